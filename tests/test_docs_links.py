"""Links between pages lead somewhere, and pages of docs/measured say what made them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.common.measured import made_by

ROOT = Path(__file__).parents[1]
MEASURED = sorted((ROOT / "docs" / "measured").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
NAMED = re.compile(r"\bdocs/[\w/-]+\.md\b")
MADE = re.compile(r", commit [0-9a-f]{7,}, \d{4}-\d\d-\d\d: ")


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Files and anchors that a page leads to."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not link.startswith(("http:", "https:")):
            path, _, anchor = link.partition("#")
            yield (page.parent / path if path else page), anchor


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found: Counter[str] = Counter()
    result = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        result.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return result


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    for path, anchor in links(page):
        assert path.exists(), path
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{path.relative_to(ROOT)}#{anchor}"


def test_each_page_is_linked_from_another_one() -> None:
    linked = {path.resolve() for page in PAGES for path, _ in links(page) if path != page}
    assert [page.name for page in PAGES if page.parent != ROOT and page.resolve() not in linked] == []


def test_the_site_lists_each_page_once() -> None:
    settings = (ROOT / "docs" / "site" / "zensical.toml").read_text(encoding="utf-8")
    listed = Counter(re.findall(r'"([\w-]+\.md)"', settings))  # measured ones are added by docs/site/build.py
    ours = {page.name for page in (ROOT / "docs").glob("*.md")} - {"measured.md"}
    made = {"index.md", "contributing.md", "changelog.md", "python-reference.md"}
    assert listed == Counter(ours | made), "name the page in `nav` of docs/site/zensical.toml"


def test_pages_that_code_names_are_there() -> None:
    for folder in ("conrepair", "plugins", "benchmarks", "tests", "tests_real", "tests_found", "examples"):
        for file in (ROOT / folder).rglob("*.py"):
            for name in NAMED.findall(file.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{file.relative_to(ROOT)}: {name}"


@pytest.mark.parametrize("name", ["architecture.md", "extending.md", "localization-method.md"])
def test_modules_that_pages_name_are_there(name: str) -> None:
    known = [str(path.relative_to(ROOT)) for path in ROOT.glob("[bcept]*/**/*.py")] + ["main.py"]
    for module in re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / name).read_text(encoding="utf-8")):
        others = re.compile("(.*/)?" + re.sub("[A-Z]{3,}", "[a-z0-9_]+", module))  # NAME is of what's added
        assert any(map(others.fullmatch, known)), module


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.stem)
def test_a_measured_page_says_what_made_it(page: Path) -> None:
    line = page.read_text(encoding="utf-8").splitlines()[2]
    assert MADE.search(line) or "conrepair" in line, (
        line
    )  # a listing, which a test holds against the code, has no commit


def test_what_made_a_page_is_a_command_of_a_commit() -> None:
    assert MADE.search(made_by("python -m benchmarks.x"))
