"""What's wrong with a built site: links, anchors and pictures that lead nowhere, and what is asked of other hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
_STYLED = re.compile(r"""(?:url\(|@import )\s*["']?(https?:)?//""")
_ELSEWHERE = ("http:", "https:", "//")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep anchors, links and what the page loads by itself."""
        values = {name: value for name, value in attrs if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in _LOADED and _LOADED[tag] in values and values.get("rel") not in {"canonical", "prev", "next"}:
            self.loaded.append(values[_LOADED[tag]])


def problems(folder: Path) -> list[str]:
    """Each in a line.

    Args:
        folder: Of the HTML.
    """
    pages = {}
    for file in sorted(folder.rglob("*.html")):
        pages[file] = _Page()
        pages[file].feed(file.read_text(encoding="utf-8"))
    return [
        *(f"{file.relative_to(folder)}: {words}" for file in pages for words in _of(file, pages, folder)),
        *(
            f"{style.relative_to(folder)}: loads something from another host"
            for style in sorted(folder.rglob("*.css"))
            if _STYLED.search(style.read_text(encoding="utf-8"))
        ),
    ]


def _of(file: Path, pages: dict[Path, _Page], folder: Path) -> Iterator[str]:
    page = pages[file]
    for link in page.loaded:
        if link.startswith(_ELSEWHERE):
            yield f"loads {link} from another host"
        elif not _there(file, link, folder).exists():
            yield f"loads {link}, which isn't there"
    for link in page.links:
        if link.startswith((*_ELSEWHERE, "mailto:", "javascript:")):
            continue
        there = _there(file, link, folder)
        anchor = unquote(urlsplit(link).fragment)
        if not there.exists():
            yield f"links {link}, which isn't there"
        elif anchor and there in pages and anchor not in pages[there].anchors:
            yield f"links {link}, which has no such heading"


def _there(file: Path, link: str, folder: Path) -> Path:
    path = unquote(urlsplit(link).path)
    there = file if not path else (folder / path[1:] if path.startswith("/") else file.parent / path).resolve()
    return there / "index.html" if there.is_dir() else there
