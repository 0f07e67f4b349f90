"""What people read of the code: its messages and docstrings, and whether they have the words of the field.

`python -m tests.support.words [FOLDER...]` lists those without a word of docs/glossary.md, which tests count.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "conrepair", *sorted(ROOT.glob("plugins/*/conrepair_*")))
OURS = re.compile(
    r"(?<!--)\b(?:answers|introduc(?:es|ed)|explains|pieces?|faces?|latent|guilt\w*|convict\w*|accus\w*|culprits?"
    r"|the noise floor|nothing is proven|the source(?:'s)?(?! (?:code|file))|the target(?:'s)?(?! "
    r"shape)|source and target"
    r"|rows whose number depends)\b",
    re.IGNORECASE,
)
"""Words of the code for things that the field has words for."""
_SENTENCE = re.compile(r"[a-z]{2,}[',:;]? [a-z]{2,}")
_STATEMENT = re.compile(
    r"(?<!\w)[A-Za-z]\w*\(|=\(|<.*>|\\[dws(]|^(?:import|from) \w+"
)  # of the equations' language, of graphs, of patterns


@dataclass(frozen=True)
class Text:
    """A text of the code.

    Attributes:
        file: From the root.
        line: Where it begins.
        words: Of an f-string, `{}` for what is put in.
        shown: Whether it's a message, and no docstring.
    """

    file: str
    line: int
    words: str
    shown: bool

    @property
    def part(self) -> str:
        package, *inside = self.file.split("/")
        return f"{package}/{inside[0]}" if len(inside) > 1 else package


@functools.cache
def texts() -> tuple[Text, ...]:
    """Messages, and first sentences of docstrings, of all packages."""
    return tuple(text for package in PACKAGES for file in sorted(package.rglob("*.py")) for text in _of_file(file))


def _of_file(file: Path) -> Iterator[Text]:
    name, skipped = file.relative_to(ROOT).as_posix(), set[int]()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):  # what holds others comes before them
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            skipped.add(id(node.value))
            yield Text(name, node.lineno, node.value.value.partition("\n\n")[0], shown=False)
        elif isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in skipped:
            if isinstance(node, ast.JoinedStr):
                skipped.update(map(id, node.values))
            if _is_sentence(words := _words(node)):
                yield Text(name, node.lineno, words, shown=True)


def _is_sentence(words: str) -> bool:
    return bool(_SENTENCE.search(words)) and not _STATEMENT.search(words)


def _words(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def nouns() -> re.Pattern[str]:
    """The words of the glossary, and their plurals."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    first = " ".join(re.findall(r"(?m)^\| ([^|]*) \|", page)) + page.partition("as everywhere:")[2]
    words = set(re.findall(r"[a-z][\w-]{2,}", first.lower())) - {"not", "these", "word", "the"}
    return re.compile(rf"\b(?:{'|'.join(sorted(words))})(?:s|es)?\b", re.IGNORECASE)


def without_noun() -> list[Text]:
    """Texts that name nothing that the glossary has."""
    known = nouns()
    return [text for text in texts() if not known.search(text.words)]


if __name__ == "__main__":
    found = [text for text in without_noun() if text.file.startswith(tuple(sys.argv[1:]) or "")]
    print("\n".join(f"{text.file}:{text.line}: {text.words!r}" for text in found))
    print(f"{len(found)} texts without a word of the glossary")
