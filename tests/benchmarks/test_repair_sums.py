"""Sums and tables of rows made by hand."""

from __future__ import annotations

import dataclasses

import pytest
from benchmark_rows import case, left, result, row, side, untouched

from benchmarks.repair.rows import Row
from benchmarks.repair.sums import sums
from benchmarks.repair.tables import report

_PARTLY = {"mended": False, "after": side(0.2, 1, 1, runs=True)}


def rows() -> list[Row]:
    elsewhere = result(places=[["relu"]])
    return [
        *(row(number) for number in range(4)),
        row(4, value=elsewhere),
        row(5, value=result(**_PARTLY, file=result()["file"] | {"own_format": False})),
        row(6, value=left()),
        row(
            7, value=result(mended=False, after=side(0.9, 5, 1, runs=True), localize_seconds=2.0, repair_seconds=9.0)
        ),
        Row(case(8), "failed", "crashed"),
        Row(case(9), "no place"),
        row(0, count=2),
        row(1, count=2, value=left()),
        row(0, count=3),
        *(row(number, count=0, group="correct", value=untouched()) for number in range(3)),
        row(3, count=0, group="correct", value=untouched(edits=["something"])),
        row(4, count=0, group="intended", value=untouched(edits=["something"])),
    ]


def test_every_figure() -> None:
    found = sums(rows())
    assert found.single == 9  # with the one that failed, without the one that has no place
    assert found.repaired == pytest.approx(5 / 9)
    assert (found.partly, found.left, found.worse, found.failed) == (1, 1, 1, 1)
    assert found.placed == found.minimal == pytest.approx(4 / 5)
    assert found.minimal_of == 5
    assert (found.double, found.double_repaired) == (2, 0.5)
    assert (found.triple, found.triple_repaired) == (1, 1.0)
    assert found.changed == 8
    assert found.written == pytest.approx(7 / 8)
    assert (found.correct, found.touched) == (4, 1)
    assert (found.tried, found.edits) == (1, 1)
    assert (found.localize_seconds, found.repair_seconds, found.ratio, found.longest) == (0.5, 1.0, 2.0, 9.0)


def test_nothing_has_no_shares() -> None:
    found = sums([])
    assert (found.single, found.worse, found.correct) == (0, 0, 0)
    assert found.repaired is found.minimal is found.written is found.ratio is None


def test_the_table_of_what_is_wanted() -> None:
    text = report(rows())
    assert "| single faults fully repaired | 95 % | 55.6 % of 9 | at least 21.2 % |" in text
    assert "| double faults fully repaired | 90 % | 50.0 % of 2 |" in text
    assert "| made worse | 0 | 1 of 12 | at most 38.5 % |" in text
    assert "| correct conversions touched | 0 | 1 of 4 | at most 80.6 % |" in text
    assert "| minimal, of repaired single faults | 95 % | 80.0 % of 5 |" in text
    assert "| written back and verified | 90 % | 87.5 % of 8 |" in text


def test_everything_that_went_wrong_is_listed_by_name() -> None:
    text = report(rows())
    for title, count in {
        "Made worse": 1,
        "Correct, and touched": 1,
        "Failed": 1,
        "Not written back": 1,
        "Repaired elsewhere": 1,
        "Repaired partly": 1,
        "Left": 2,
        "Changed on purpose, and touched": 1,
    }.items():
        assert f"## {title} ({count})" in text
    assert "Claimed, and not so" not in text
    assert f"`{case(6).name}`" in text
    assert "| fault-6-0 | 1 | 0 | 0 | 1 | 0 | 0 |" in text
    assert "| fault-0-0 | " not in text  # always repaired


def test_what_was_off_before_the_fault_is_told_by_itself() -> None:
    off = row(10, group="quantized", value=left(off="called faulty without the fault"))
    assert sums([*rows(), off]) == sums(rows())
    text = report([*rows(), off])
    assert "## Off by itself (1)" in text
    assert f"| {off.case.name} | called faulty without the fault | 1 | left | 5.0e-01 | 5.0e-01 | 1 |" in text


def test_tables_go_by_group_and_format() -> None:
    native = dataclasses.replace(case(1, group="native"), format="tflite")
    text = report([row(), Row(native, "measured", "", left())])
    assert "| onnx, onnx | 1 | 100.0 % |" in text
    assert "| native, tflite | 1 | 0.0 % |" in text
