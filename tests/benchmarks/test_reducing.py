"""What ONNX Runtime's optimizations make wrong comes down to the nodes and the number that they need."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from benchmarks.fuzz.reducing import PLANTS, Plant, planted
from conrepair_lab.cases.reduce import reduce

MODEL = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 6] x, float[2, 6] z) => (float[2, 6] y) {
    a = Sin (x) b = Mul (a, z) c = Relu (b) y = Add (c, x) }"""
)
INPUTS = {"x": np.linspace(-1.7, 2, 12, dtype=np.float32).reshape(2, 6), "z": np.full((2, 6), 0.3, np.float32)}


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.name for plant in PLANTS])
def test_a_planted_fault(plant: Plant) -> None:
    case = planted(MODEL, INPUTS, plant, 0)
    assert case is not None
    assert len(case.model.graph.node) >= 9
    found = reduce(case, plant.still)
    assert found.exact
    assert found.tries < 100
    assert all(array.size == 1 for array in found.case.inputs.values())
    left = sorted(node.op_type for node in found.case.model.graph.node)
    assert left == sorted(plant.name.removesuffix(", without a bound").split(", "))
