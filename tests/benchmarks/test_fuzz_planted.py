"""Planted faults are made smaller in the network or in its answers, and sizes don't rest on the judge's bound."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from fuzz_cases import case

from benchmarks.fuzz.planted import compared, fitting, measured, planted
from benchmarks.fuzz.planted_page import ROUNDING, SHARE, page
from benchmarks.fuzz.scaled import blended, in_own_types, scale_of, scaled
from conrepair_lab.fuzz.looking import RIGHT, SUSPECT
from conrepair_lab.generate.onnx_form import run

ADDED = "g (float[2, 3] x) => (float[2, 3] y) <float[3] z = {1.0, 2.0, 3.0}> { a = Add (x, z) y = Relu (a) }"
X = np.array([[0.1, 0.2, 0.3], [1.1, 1.2, 1.3]], np.float32)
HEAD = '<ir_version: 10, opset_import: ["" : 20]> '


def of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text)


def test_weights_and_attributes_are_blended() -> None:
    right = of("g (float[1] x) => (float[1] y) <float[1] w = {1.0}> { a = Mul (x, w) y = Elu <alpha = 1.0> (a) }")
    wrong = of("g (float[1] x) => (float[1] y) <float[1] w = {3.0}> { a = Mul (x, w) y = Elu <alpha = 2.0> (a) }")
    made = blended(right, wrong, 0.25)
    assert made is not None
    assert onnx.numpy_helper.to_array(made.graph.initializer[0]) == 1.5
    assert onnx.helper.get_attribute_value(made.graph.node[1].attribute[0]) == 1.25
    whole = blended(right, wrong, 1.0)
    assert whole is not None
    assert run(whole, {"x": -X[0, :1]}, ["y"]) == run(wrong, {"x": -X[0, :1]}, ["y"])


@pytest.mark.parametrize(
    "other",
    [
        "g (float[1] x) => (float[1] y) { y = Relu (x) }",
        "g (float[1] x) => (float[1] y) { a = Elu (x) y = Elu <alpha = 1.0> (a) }",
        "g (float[1] x) => (float[1] y) { y = Elu (x) }",
    ],
)
def test_other_graphs_are_not_blended(other: str) -> None:
    assert blended(of("g (float[1] x) => (float[1] y) { y = Elu <alpha = 1.0> (x) }"), of(other), 0.5) is None


def test_answers_are_scaled_where_they_are_real_and_finite() -> None:
    right = {"r": np.array([1.0, 2.0, np.inf], np.float32), "n": np.array([1, 2])}
    wrong = {"r": np.array([2.0, np.nan, 0.0], np.float32), "n": np.array([3, 3])}
    made = scaled(right, wrong, 0.25)
    assert made["r"].tolist() == [1.25, 2.0, np.inf]
    assert made["r"].dtype == np.float32
    assert made["n"] is right["n"]


def test_rounding_is_half_an_ulp_at_least() -> None:
    made = case(ADDED, x=X)
    right = run(made.model, made.inputs, ["y"])
    scale = scale_of(made, (right, *in_own_types(made.model, made.inputs, right)))
    assert scale.known
    assert scale.rounding["y"] >= 2.0**-23 / 2
    assert scale.in_roundings({"y": np.full((2, 3), 10 * scale.rounding["y"])}) == pytest.approx(10)
    assert scale.in_bounds({"y": 3 * scale.bound["y"]}) == pytest.approx(3)


def test_a_fault_is_told_at_sizes_that_rounding_does_not_reach() -> None:
    made = case(ADDED, x=X)
    assert "operator-replaced" in fitting(made)
    rows = planted(made, 0, "operator-replaced")
    assert [row.verdict for row in rows if row.by == SHARE] == [SUSPECT] * 4
    assert [row.verdict for row in rows if row.by == ROUNDING][-3:] == [SUSPECT] * 3
    assert [item.verdict for item in compared(made, 0, ["ort-none", "ort-all"])] == [RIGHT, RIGHT]


def test_the_page_counts() -> None:
    rows, beside, ended = measured([case(ADDED, x=X)], 1, 0)
    text = page(rows, beside, ended, "Made by `x`, commit 1234567, 2026-11-27: by a command, not by hand.")
    assert "1 networks with a fault each, of 1 of the" in text
    assert "| ort-all | 1 | 1 | 0 | 0 | 0 | 0 |" in text
    assert "| 256 | 1 of 1 (100.0%) |" in text
