"""Generated networks in ONNX Runtime stay within their bounds, but for operators that are known to lose digits."""

from __future__ import annotations

import numpy as np
import pytest

import conrepair
from conrepair.verdicts.truth.bound import Analysis
from conrepair.verdicts.truth.judging import judge

LINEAR = (
    "Add",
    "Sub",
    "Mul",
    "MatMul",
    "Gemm",
    "Conv",
    "AveragePool",
    "ReduceMean",
    "ReduceSum",
    "Concat",
    "Transpose",
)
STEEP = ("Div", "Reciprocal", "Exp", "Log", "Sqrt", "Pow", "Erf", "Sin", "Softmax", "ReduceL2", "LayerNormalization")
STEPS = ("Floor", "Round", "Greater", "Where", "Clip", "ArgMax", "Gather", "Max", "Relu", "Cast", "Slice")
ACCURACY = dict.fromkeys(("Exp", "Log", "Pow", "Erf", "Sin", "Softmax"), 4.0)


@pytest.mark.parametrize("operators", [LINEAR, STEEP, STEPS, (*LINEAR, *STEEP, *STEPS)])
def test_what_onnxruntime_computes_is_within_the_bound(operators: tuple[str, ...]) -> None:
    judged = []
    for network in conrepair.generated(3, nodes=6, operators=list(operators), dtypes=["float32"], opset=17, seed=5):
        found = Analysis(network.model).at(network.inputs, ACCURACY)
        for name, given in network.outputs.items():
            if np.isfinite(found.truth[name]).all():
                judged.append(judge(given, given, found.truth[name], found.bound[name]))
                assert judged[-1].kind == "equal", (name, judged[-1])
    assert any(0.001 < item.one.bounds <= 1 for item in judged) or operators == STEPS
