"""Tables for spreadsheets: no text in a cell is a formula, and each is read again as it was."""

from __future__ import annotations

import csv
import dataclasses
import io
import math

import localizations
import pytest
import told_runs
from hypothesis import given
from hypothesis import strategies as st

from conrepair.application.report.csv_text import csv_text, original_text
from conrepair.application.report.texts import texts_of
from conrepair.verdicts.evaluate.verdict import Verdict

FORMULAS = ["=1+1", "+1", "-1", "@SUM(1)", '=HYPERLINK("http://evil.example";"x")', "=cmd|'/C calc'!A0", "\uff1d1+1"]
BEFORE = ["", " ", "\t", "\r", "\n", '"', "'", "a;", 'a\t"', "a\r", "a\r\n", "a\u2028", "\x00", "\ufeff"]
HOSTILE = [before + formula for before in BEFORE for formula in FORMULAS]
LETTERS = st.sampled_from("=+-@'\";,\t\r\n\v\x85\u2028\uff1d a1")
NAMES = st.sampled_from(HOSTILE) | st.text(LETTERS, max_size=8) | st.text()


def read(text: str, delimiter: str = ",", quoting: int = csv.QUOTE_MINIMAL) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting))


def begins_a_formula(cell: str) -> bool:
    return cell.lstrip(' \t\r\n\v\f\x85\u2028\u2029\ufeff\x00"').startswith(("=", "+", "-", "@", "\uff1d"))


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and cell not in FORMULAS


@given(st.lists(st.tuples(NAMES, st.floats() | st.integers(), NAMES), max_size=5))
def test_each_text_is_read_as_it_was_and_no_row_breaks(rows: list[tuple[str, float, str]]) -> None:
    head, *found = read(csv_text(["one", "two", "three"], rows))
    assert head == ["one", "two", "three"]
    assert [(original_text(one), original_text(three)) for one, _, three in found] == [(a, b) for a, _, b in rows]
    for (_, told, _), (_, number, _) in zip(found, rows, strict=True):
        assert float(told) == number or (math.isnan(float(told)) and math.isnan(number))


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_no_cell_begins_like_a_formula_however_it_is_parted(names: list[str]) -> None:
    """Where lists are parted at `;`, or by a reader that knows no quotes, cells begin elsewhere."""
    text = csv_text(["name"], [[name] for name in names])
    for delimiter, quoting in ((",", csv.QUOTE_MINIMAL), (";", csv.QUOTE_NONE), ("\t", csv.QUOTE_NONE)):
        assert not [cell for row in read(text, delimiter, quoting) for cell in row if begins_a_formula(cell)]


def test_numbers_stay_numbers() -> None:
    cells = [-1.5, -3, math.inf, -math.inf, True, False, None, "net", "a,b", 'say "b"', "it's", "a-b"]
    assert csv_text(["x"], [cells]).splitlines()[1] == (
        '-1.5,-3,inf,-inf,true,false,,net,"a,b","say ""b""",it\'s,a-b'
    )


@pytest.mark.parametrize("name", [*FORMULAS, "\rconv", "a\r\nb", "a\u2028b"])
def test_all_tables_of_a_run_are_neutral(name: str) -> None:
    found = localizations.with_names(localizations.made(2, {1: 0.5}), name, [0, 1])
    run = localizations.run_of(found, localizations.about())
    row = dataclasses.replace(run.rows[0], model=name, backend=name, verdict=Verdict.FAULTY, reason=name)
    texts = texts_of(told_runs.audit(row, architectures=(name,))) | texts_of(run)
    tables = {path: text for path, text in texts.items() if path.endswith(".csv")}
    assert len(tables) >= 4
    for text in tables.values():
        head, *rows = read(text)
        assert all(len(cells) == len(head) for cells in rows)
        assert not [cell for cells in rows for cell in cells if begins_a_formula(cell) and not is_number(cell)]
    cells = [original_text(cell) for cell in read(texts["layers.csv"])[1]]
    assert name in cells
