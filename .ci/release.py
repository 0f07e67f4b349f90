"""Prepare a checkout for a release: the tag must be the version, the project's addresses are those of the repository.

`python .ci/release.py ADDRESS TAG`, as `.github/workflows/release.yml` calls it: no address is written down in the
repository, so that a fork's packages lead to the fork. A registry shows README.md without the files beside it, so its
links are made absolute, to the files as they are at the tag.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)")
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_URLS = """
[project.urls]
Homepage = "{address}"
Documentation = "{address}/tree/{tag}/docs"
Source = "{address}/tree/{tag}"
Issues = "{address}/issues"
Changelog = "{address}/blob/{tag}/CHANGELOG.md"
"""


def main(root: Path, address: str, tag: str) -> str:
    """Write the addresses into a checkout.

    Args:
        root: Of the checkout; its pyproject.toml and README.md are changed.
        address: Of the repository, as https://example.org/owner/name.
        tag: Of the release, "v" and the version.

    Returns:
        What to say: "" where all is well.
    """
    if not re.fullmatch(r"https://[\w.-]+(/[\w.-]+)+", address):
        return f"{address} is no address of a repository: it's written as https://HOST/OWNER/NAME"
    version = _VERSION.findall((root / "conrepair" / "__init__.py").read_text(encoding="utf-8"))
    if [tag] != [f"v{found}" for found in version]:
        return f"the tag is {tag}, and the version in conrepair/__init__.py {', '.join(version)}: give the same"
    if f"\n## {version[0]}" not in (root / "CHANGELOG.md").read_text(encoding="utf-8"):
        return f"CHANGELOG.md has no section {version[0]}: write what changed"
    project = root / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    if "[project.urls]" in text:
        return "pyproject.toml has addresses already: this checkout was prepared before"
    head, scripts, rest = text.partition("[project.scripts]")
    told = _URLS.format(address=address, tag=tag).lstrip("\n")
    project.write_text(f"{head}{told}\n{scripts}{rest}", encoding="utf-8")
    page = root / "README.md"
    page.write_text(absolute(page.read_text(encoding="utf-8"), address, tag), encoding="utf-8")
    return ""


def absolute(text: str, address: str, tag: str) -> str:
    """A page of the root whose links to files beside it lead to the repository.

    Args:
        text: Markdown.
        address: Of the repository.
        tag: At which the files are shown.
    """

    def told(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        return f"{picture}{words}({address}/{'raw' if picture else 'blob'}/{tag}/{path.removeprefix('./')})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _LINK.sub(told, part) for part in parts)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python .ci/release.py ADDRESS TAG")
    sys.exit(main(Path(__file__).resolve().parents[1], *sys.argv[1:]) or None)
