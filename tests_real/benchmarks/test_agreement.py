"""No verb says what another denies: on rows made by hand, and over the benchmarks' own cases."""

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
from benchmarks.families import __main__ as families
from benchmarks.families.rows import FamilyRow
from benchmarks.localization import __main__ as localization
from benchmarks.localization import rows as localized
from benchmarks.repair import __main__ as repair
from benchmarks.repair import rows as repaired
from benchmarks.rightness import __main__ as rightness
from benchmarks.systematic import __main__ as systematic

_CASE = Case("onnx", "perceptron", "onnx", "onnx", ("fault",), 1, 11)


@pytest.mark.parametrize(
    ("compare", "localize", "agrees"),
    [
        ("faulty", "faulty", True),
        ("faulty", "undecided", False),
        ("faulty", "noise", False),
        ("noise", "equivalent", True),
        ("equivalent", "faulty", False),
        ("undecided", "equivalent", False),
        ("undecided", "undecided", True),
        ("failed", "equivalent", None),
        ("", "", None),
    ],
)
def test_verbs_agree_where_they_say_the_same(compare: str, localize: str, agrees: bool | None) -> None:
    said = {"compare": compare, "localize": localize} if compare else {}
    row = localized.Row(_CASE, "measured", "", {"said": said, "found": [], "injected": []})
    assert row.agrees is agrees
    assert disagreements([row]).startswith(f"disagreements: {int(agrees is False)} of {int(agrees is not None)}")
    assert localized.Row(_CASE, "failed", "", {}).agrees is None


@pytest.mark.parametrize(
    ("value", "agrees"),
    [
        (result(exit=0, delivered="equivalent"), True),
        (result(exit=0, delivered="faulty"), False),
        (result(exit=1, delivered="equivalent"), False),
        (result(exit=0, mended=False, after=result()["before"] | {"runs": True}), False),
        (left(exit=1), True),
        (left(exit=0), False),
    ],
)
def test_repair_ends_well_only_where_it_repairs(value: dict[str, Any], agrees: bool) -> None:
    said = dict.fromkeys(("compare", "localize", "repair"), "faulty")
    assert repaired.Row(_CASE, "measured", "", {"said": said} | value).agrees is agrees


def _measured(module: Any, sort: type[CaseRow], path: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", "--lanes", "1", "--json", str(path), *more])
    module.main()
    rows = read_rows(sort, path)[1]
    asked = [row for row in rows if row.agrees is not None]
    assert any(row.verdicts["compare"] == "faulty" for row in asked)
    assert disagreements(rows).splitlines() == [f"disagreements: 0 of {len(asked)}"]


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
@pytest.mark.parametrize(
    ("module", "sort", "more"),
    [
        pytest.param(attention, JudgedRow, ("--first", "60"), id="attention"),
        pytest.param(families, FamilyRow, ("--first", "30"), id="families"),
        pytest.param(localization, localized.Row, ("--quick",), id="localization"),
        pytest.param(repair, repaired.Row, ("--quick",), id="repair"),
        pytest.param(rightness, JudgedRow, ("--first", "60"), id="rightness"),
        pytest.param(systematic, repaired.Row, ("--first", "12", "--formats", "onnx"), id="systematic"),
    ],
)
def test_no_verb_denies_another(
    module: Any, sort: type[CaseRow], more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _measured(module, sort, tmp_path / "rows.json", monkeypatch, *more)
