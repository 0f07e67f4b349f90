"""The list of converters in the documentation."""

from __future__ import annotations

from pathlib import Path

from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.converters.listing import listing

DOCS = Path(__file__).parents[3] / "docs" / "measured" / "converters.md"


def test_the_list_in_the_documentation_is_up_to_date() -> None:
    assert DOCS.read_text(encoding="utf-8") == listing(), (
        "run: python -m conrepair.formats.converters.listing docs/measured/converters.md"
    )


def test_every_converter_is_listed_once() -> None:
    lines = listing().splitlines()
    assert all(sum(line.startswith(f"| {name} |") for line in lines) == 1 for name in CONVERTERS)
