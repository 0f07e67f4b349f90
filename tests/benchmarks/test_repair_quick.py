"""The benchmarks of repair on one small network."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.common.cases import DEVELOPMENT_SEEDS
from benchmarks.common.rows import read_rows
from benchmarks.repair import __main__ as benchmark
from benchmarks.repair.cases import plan
from benchmarks.repair.rows import Row
from benchmarks.repair_cost import measure

pytestmark = pytest.mark.slow

_WEIGHTS = {"weights-disturbed", "weights-scaled", "weights-zeroed"}
_CASES = plan(["perceptron"], DEVELOPMENT_SEEDS)
_FAULT, _NATIVE = (
    next(case.name for case in _CASES if (case.group, case.format) == sort and case.faults[0] in _WEIGHTS)
    for sort in (("onnx", "onnx"), ("native", "tflite"))
)
_RIGHT = next(case.name for case in _CASES if case.group == "correct" and case.format == "tflite")


def test_faults_are_repaired_and_a_correct_conversion_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    chosen = [argument for name in (_FAULT, _NATIVE, _RIGHT) for argument in ("--case", name)]
    arguments = ["--only", "perceptron", "--lanes", "1", "--json", str(path), *chosen]
    monkeypatch.setattr(sys, "argv", ["benchmarks.repair", *arguments])
    assert benchmark.main() == 0
    rows = {row.case.name: row for row in read_rows(Row, path)[1]}
    assert {name: row.score.outcome for name, row in rows.items()} == {
        _FAULT: "repaired",
        _NATIVE: "repaired",
        _RIGHT: "untouched",
    }
    for name in (_FAULT, _NATIVE):
        score, value = rows[name].score, rows[name].result
        assert (score.minimal, score.written, score.honest) == (True, True, True)
        assert value["before"]["error"] > 1e-3 > value["after"]["error"]
        assert len(value["edits"]) == 1
        assert "patch.json" in value["out"]
    right = rows[_RIGHT].result
    assert (right["out"], right["command"]["exit"], right["command"]["out"]) == ([], 0, False)
    assert "| single faults fully repaired | 95 % | 100.0 % of 2 |" in capsys.readouterr().out


def test_the_cost_of_a_repair(tmp_path: Path) -> None:
    costs = measure("perceptron", "weights-scaled", 24, 11, tmp_path)
    assert set(costs) == {"onnx", "tflite"}
    for cost in costs.values():
        assert cost["mended"]
        assert (cost["verified"], cost["differing"]) == (16, 0)
        assert cost["ratio"] == pytest.approx(cost["repair"] / cost["localization"])
        assert cost["repair_command"] > cost["repair"] > cost["localization"] > 0
    json.dumps(costs)
