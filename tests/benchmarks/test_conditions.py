"""Passes that are wrong under a condition are found, and reduced to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from fuzz_cases import case

from benchmarks.fuzz.conditions import CONDITIONS, broken, tried
from conrepair_lab.generate.onnx_form import run

NAMES = {condition.name: condition for condition in CONDITIONS}


def test_a_network_with_the_condition_is_reduced_to_it(tmp_path: Path) -> None:
    text = """g (float[2, 3] x) => (float[3, 4] y, float[2, 3] w) <float[2, 3] z = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}>
    { a = Tanh (x) c = Concat <axis = 0> (a, z) d = Sin (c) e = Transpose (d) y = Cos (e) w = Exp (a) }"""
    made = case(text, x=np.ones((2, 3), np.float32))
    row = tried(NAMES["Concat of the first axis"], [made], tmp_path, 10.0)
    assert (row.networks, row.nodes) == (1, 1)
    assert not tried(NAMES["Conv with a stride"], [made], tmp_path, 10.0).networks


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.name)
def test_a_pass_leaves_other_networks_alone(condition: object) -> None:
    text = "g (float[2] x) => (float[2] y) { y = Sqrt (x) }"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')
    assert broken(model, condition) == model  # type: ignore[arg-type]


def test_a_broken_network_is_valid_and_computes_something_else() -> None:
    text = """g (double[2] x, bool[2] b) => (double[2] y) { a = Add (x, x) y = Where (b, a, x) }"""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')
    made, fed = broken(model, NAMES["Add in double precision"]), {"x": np.ones(2), "b": np.array([True, False])}
    onnx.checker.check_model(made, full_check=True)
    assert run(model, fed, ["y"])["y"].tolist() == [2.0, 1.0]
    assert run(made, fed, ["y"])["y"].tolist() == [3.0, 1.0]
