"""Pages that tell speak the words of the field, and not those that the code has for the same things."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = re.compile(
    r"\b(?:introduc(?:es?|ed|ing)|explain(?:s|ed)?|pieces?|floors?|latent|guilt\w*|accus\w*|convict\w*"
    r"|(?:other|right|wrong|same) answers|the source(?:'s)?|the target's|source and target)\b",
    re.IGNORECASE,
)
OF_THE_CODE = {"architecture", "development", "extending"}  # they name what the code calls so
OF_THE_LABORATORY = {"fuzz", "generate", "trace"}
LEFT_OUT = OF_THE_CODE | OF_THE_LABORATORY
PAGES = [ROOT / "README.md", *(page for page in (ROOT / "docs").glob("*.md") if page.stem not in LEFT_OUT)]


def prose(page: Path) -> str:
    """Without code, and where links lead."""
    return re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", "`", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_have_the_words_of_the_field(page: Path) -> None:
    assert OURS.findall(prose(page)) == []


def test_our_words_would_be_found() -> None:
    assert OURS.findall("the layer introduces more than rounding explains, and so does the source's") == [
        "introduces",
        "explains",
        "the source's",
    ]
