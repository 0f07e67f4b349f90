"""Outputs in numbers, the same on every report; and a tolerance for tests of a user's own that rounding passes."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import localizations
import numpy as np
import onnx
import pytest
import small_models as small

import conrepair
from conrepair.application.report.localization.texts import layers_csv
from conrepair.application.report.results import Compared
from conrepair.application.report.told import FEW, output_table
from conrepair.ground.metrics.tensors import compare_tensors
from conrepair.verdicts.evaluate.own_tests import for_tests


def network(path: Path, more: float = 0.0) -> Path:
    """Scores of classes, and a number."""
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    held = {"w": np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32), "more": np.float32([8 + more])}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["scores"]),
        helper.make_node("ReduceMax", ["scores"], ["most"], axes=[1], keepdims=0),
        helper.make_node("Add", ["most", "more"], ["number"]),
    ]
    outputs = {"scores": ["batch", 6], "number": ["batch"]}
    graph = helper.make_graph(
        nodes,
        "two",
        [helper.make_tensor_value_info("x", float32, ["batch", 4])],
        [helper.make_tensor_value_info(name, float32, shape) for name, shape in outputs.items()],
        [onnx.numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    return small.save_onnx(path, graph)


def spread(reference: np.ndarray, candidate: np.ndarray) -> float:
    return float(np.ptp(candidate))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Compared, Path]:
    folder = tmp_path_factory.mktemp("outputs")
    pair = network(folder / "source.onnx"), network(folder / "target.onnx", 1e-6)
    found = conrepair.compare(*pair, metrics={"function": spread, "output": "number"})
    return found, found.save(folder / "report")


def test_every_report_has_a_row_for_each_output(compared: tuple[Compared, Path]) -> None:
    found, folder = compared
    titles, scores, number = output_table(found.run.rows, found.run)
    assert titles == (
        *("output", "verdict", "relative error", "max abs error", "accepted by"),
        *("SQNR dB", "cosine", "KL divergence", "top-5 agree", "spread"),
    )
    assert (scores[0], scores[5], scores[8], scores[9]) == ("scores", "inf", "100 %", "")
    assert (number[0], number[7], number[8]) == ("number", "", "")
    texts = {
        name: (folder / name).read_text() for name in ("summary.txt", "summary.md", "report.html", "result.json")
    }
    for name in ("summary.txt", "summary.md", "report.html"):
        assert all(cell in texts[name] for cell in (*titles, number[4], number[5], number[9])), name
    lines = list(csv.DictReader((folder / "comparisons.csv").open()))
    assert (lines[0]["sqnr_db"], lines[0]["kl_divergence"][:1], lines[0]["overlap"]) == ("inf", "0", "1.0")
    assert float(lines[1]["spread"]) == pytest.approx(float(number[9]), rel=0.01)
    saved = json.loads(texts["result.json"])["rows"][-1]["comparison"]["outputs"]
    assert saved[1]["metrics"]["spread"] == float(lines[1]["spread"])


def test_a_tolerance_for_tests_is_told(compared: tuple[Compared, Path]) -> None:
    found, folder = compared
    number = found.run.rows[-1].comparison.outputs[1]
    assert number.tests is not None
    for name in ("summary.txt", "report.html"):
        assert f"output number: {number.tests}" in (folder / name).read_text()
    assert number.tests.atol >= max(number.error.max_abs, number.floor * number.error.max_reference)
    worse = conrepair.compare(found.run.rows[0].ran.artifact.path, network(folder.parent / "worse.onnx", 1.0))
    outputs = worse.run.rows[-1].comparison.outputs
    assert [output.tests is None for output in outputs] == [False, True]
    assert "in your own tests" not in worse.save(folder.parent / "worse").joinpath("summary.txt").read_text()


def test_many_outputs_are_left_to_the_files(compared: tuple[Compared, Path]) -> None:
    found, _ = compared
    assert len(output_table([found.run.rows[-1]] * FEW, found.run)) == 2 * FEW + 1


@pytest.mark.parametrize("size", [1e-3, 1.0, 300.0])
def test_rounding_passes_what_is_suggested(size: float) -> None:
    generator = np.random.default_rng(3)
    right = generator.normal(size=(64, 100)) * size
    noise = right + generator.normal(size=right.shape) * size * 3e-7
    error = compare_tensors(right[:8], noise[:8], rtol=0, atol=0)
    found = for_tests(error, 3e-7, 10.0)
    assert found is not None
    np.testing.assert_allclose(noise, right, rtol=found.rtol, atol=found.atol)
    assert found.atol <= 5 * max(found.explained, error.max_abs)
    assert {f"{found.atol:.0e}"[0], f"{found.rtol:.0e}"[0]} <= {"1", "2", "5"}
    assert found.rtol == 5e-7
    assert for_tests(error, 1e-9, 10.0) is None  # more differs than rounding explains
    assert for_tests(compare_tensors(right * 0, right * 0, rtol=0, atol=0), 3e-7, 10.0) is None


def test_layers_have_a_ratio_of_signal_to_noise() -> None:
    row = localizations.row(1, 1e-3, full_run_error=0.0)
    assert row.introduced_sqnr_db == pytest.approx(60)
    assert row.full_run_sqnr_db == math.inf
    assert localizations.row(1, math.inf).introduced_sqnr_db == -math.inf
    header, line = layers_csv([row]).splitlines()
    assert dict(zip(header.split(","), line.split(","), strict=True))["full_run_sqnr_db"] == "inf"
    assert "introduced_cosine" in header
