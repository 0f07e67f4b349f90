"""The site of docs/: `make site`, then open build/site/html/index.html.

The README becomes the first page. The reference of the command line is made of the parser, and that of Python of
signatures and docstrings, so neither is kept in the repository. Files outside of docs/ that pages link are shown as
text. Zensical (by the makers of Material for MkDocs) builds the pages strictly. Then every link, anchor and picture
of the HTML is checked, and that no page loads anything from another host. Search needs a server:
`python -m http.server -d build/site/html`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import checking  # noqa: E402 (found by the path above)
import command_line_reference  # noqa: E402
import python_reference  # noqa: E402

_DOCS = ROOT / "docs"
_AT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\(([^)\s#]+)(#[^)\s]*)?\)")
_ITEM = re.compile(r"(?:\d\.|[-*]) (?=\S)")
_CODE = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)


def main() -> None:
    """Build the site, or say what's wrong with it and end with 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site", help="Where (build/site).")
    folder = parser.parse_args().folder
    written(folder)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder, check=True)
    problems = checking.problems(folder / "html")
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    sys.exit(f"{len(problems)} problems of the site") if problems else sys.stdout.write(f"{folder}/html/index.html\n")


def written(folder: Path) -> None:
    """Write the pages that the site is built of.

    Args:
        folder: Gets `zensical.toml` and `pages/`; what was there goes.
    """
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    pages.mkdir(parents=True)
    shown: set[Path] = set()
    for source in [*(ROOT / name for name in _AT), *sorted(_DOCS.rglob("*.md"))]:
        place = pages / _place(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_linked(source, shown), encoding="utf-8")
    for picture in sorted(_DOCS.rglob("*.svg")) + sorted(_DOCS.rglob("*.png")):
        (pages / _place(picture)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, pages / _place(picture))
    for file in sorted(shown):
        (pages / _place(file)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, pages / _place(file))
    shutil.copy(Path(__file__).parent / "site.css", pages)
    (pages / "command-line.md").write_text(command_line_reference.page(), encoding="utf-8")
    (pages / "python-reference.md").write_text(python_reference.page(), encoding="utf-8")
    settings = (Path(__file__).parent / "zensical.toml").read_text(encoding="utf-8")
    (folder / "zensical.toml").write_text(_with_measured(settings), encoding="utf-8")


def _with_measured(settings: str) -> str:
    """With a section of all measured pages at the navigation's end."""
    pages = [_DOCS / "measured.md", *sorted((_DOCS / "measured").glob("*.md"))]
    rows = "".join(f'    {{ "{_title(page)}" = "{_place(page)}" }},\n' for page in pages)
    return settings.replace("\n]\n", f'\n  {{ "Measured" = [\n{rows}  ] }},\n]\n', 1)


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _place(file: Path) -> PurePosixPath:
    """Of a file of the repository, among the pages."""
    name = file.relative_to(ROOT).as_posix()
    if name in _AT:
        return PurePosixPath(_AT[name])
    if file.is_relative_to(_DOCS) and file.suffix in {".md", ".svg", ".png"}:
        return PurePosixPath(file.relative_to(_DOCS).as_posix())
    return PurePosixPath("files", f"{name}.txt")


def _linked(source: Path, shown: set[Path]) -> str:
    """A page's text with links to where their files are among the pages.

    Args:
        source: The page.
        shown: Gets files outside of docs/ that it links.
    """
    up = "../" * (len(_place(source).parts) - 1)

    def moved(link: re.Match[str]) -> str:
        text, to, anchor = link[1], link[2], link[3] or ""
        if to.startswith(("http:", "https:")):
            return link[0]
        file = (source.parent / to).resolve()
        if file.is_dir():  # nothing shows a folder here
            return text.strip("![]")
        place = _place(file)
        if place.parts[0] == "files":
            shown.add(file)
        return f"{text}({up}{place}{anchor})"

    parts = _CODE.split(source.read_text(encoding="utf-8"))
    return _indented("".join(part if place % 2 else _LINK.sub(moved, part) for place, part in enumerate(parts)))


def _indented(text: str) -> str:
    """With what belongs to an item of a list four columns in, which Python-Markdown wants."""
    lines, more, code = [], 0, False
    for line in text.split("\n"):
        marker = _ITEM.match(line)
        if line.startswith("```"):
            code, more = not code, 0
        elif marker and not code:
            more = 4 - len(marker[0])
        elif line.strip() and not line.startswith("  "):
            more = 0
        lines.append(line if code or marker or not line.strip() else " " * more + line)
    return "\n".join(lines)


if __name__ == "__main__":
    main()
