"""What compare calls faulty, localize and repair don't pass: on rows made by hand, and on some that are measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from benchmark_rows import left, result

from benchmarks.attention import __main__ as attention
from benchmarks.common.cases import DEVELOPMENT_SEEDS, Case, plan
from benchmarks.common.judged import JudgedRow
from benchmarks.common.rows import CaseRow, disagreements, read_rows
from benchmarks.localization import __main__ as localization
from benchmarks.localization import rows as localized
from benchmarks.repair import __main__ as repair
from benchmarks.repair import rows as repaired

_CASE = Case("onnx", "perceptron", "onnx", "onnx", ("fault",), 1, 11)


@pytest.mark.parametrize(
    ("compared", "verdict", "agrees"),
    [
        ("faulty", "faulty", True),
        ("faulty", "undecided", True),
        ("faulty", "noise", False),
        ("noise", "equivalent", True),
        ("equivalent", "faulty", True),  # a fault that these samples don't show
        ("", "equivalent", None),
    ],
)
def test_localize_passes_nothing_that_compare_calls_faulty(compared: str, verdict: str, agrees: bool | None) -> None:
    told = {"compared": compared, "verdict": verdict, "found": [], "injected": []}
    assert localized.Row(_CASE, "measured", "", told).agrees is agrees
    assert localized.Row(_CASE, "failed", "", told).agrees is None


@pytest.mark.parametrize(
    ("value", "agrees"),
    [
        (result(exit=0), True),
        (result(exit=0, mended=False, after=result()["before"] | {"runs": True}), False),
        (left(exit=1), True),
        (left(exit=0), False),
        (result(exit=0, verdict="noise"), False),
    ],
)
def test_repair_ends_well_only_where_it_mends(value: dict[str, Any], agrees: bool) -> None:
    told = {"compared": "faulty", "verdict": "faulty"} | value
    row = repaired.Row(_CASE, "measured", "", told)
    assert row.agrees is agrees
    assert disagreements([row]).startswith(f"disagreements: {int(not agrees)} of 1")


def _measured(module: Any, sort: type[CaseRow], path: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", "--lanes", "1", "--json", str(path), *more])
    module.main()
    rows = read_rows(sort, path)[1]
    asked = [row for row in rows if row.status == "measured"]
    assert asked
    assert all(row.agrees for row in asked)
    assert any(row.result["compared"] == "faulty" for row in asked)


def _chosen(*groups: str) -> list[str]:
    cases = plan(["perceptron"], DEVELOPMENT_SEEDS)
    names = [next(case.name for case in cases if (case.group, case.format) == (group, "onnx")) for group in groups]
    return ["--only", "perceptron", *(part for name in names for part in ("--case", name))]


def test_compare_and_localize_agree_on_what_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = _chosen("framework", "onnx", "correct")
    _measured(localization, localized.Row, tmp_path / "rows.json", monkeypatch, *chosen)


def test_compare_and_repair_agree_on_what_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _measured(repair, repaired.Row, tmp_path / "rows.json", monkeypatch, *_chosen("framework"))


@pytest.mark.slow
def test_they_agree_on_attention(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _measured(attention, JudgedRow, tmp_path / "rows.json", monkeypatch, "--first", "6")
