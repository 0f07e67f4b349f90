"""What a second referee says of the outputs that are saved."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from conrepair_lab.generate.judging import refereed
from conrepair_lab.generate.onnx_form import run

GREATER = """<ir_version: 8, opset_import: ["" : 17]>
g (int64[2] x) => (int64[2] y) { y = Max (x, x) }"""


@pytest.mark.parametrize(("value", "verdict"), [(5, "same"), (2**40 + 1, "differs")])
def test_a_wrong_output_of_onnx_runtime_is_said(value: int, verdict: str) -> None:
    """A 64-bit integer beyond 32 bits, of which ONNX Runtime's kernel loses digits, is what only a referee shows."""
    model, inputs = onnx.parser.parse_model(GREATER), {"x": np.array([1, value], np.int64)}
    right = {"y": np.array([1, value], np.int64)}
    given = right if verdict == "same" else {"y": right["y"].astype(np.int32).astype(np.int64)}
    assert run(model, {"x": np.array([1, 5])}, ["y"])["y"].tolist() == [1, 5]
    found = refereed(model, inputs, given, "float64")
    assert found["verdict"] == verdict
    assert verdict == "same" or (found["output"], found["elements"]) == ("y", 1)


def test_what_nobody_else_runs_is_said() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft": 1]>
    g (float[2] x) => (float[2] y) { y = com.microsoft.QuickGelu (x) }"""
    found = refereed(
        onnx.parser.parse_model(text), {"x": np.ones(2, np.float32)}, {"y": np.ones(2, np.float32)}, "float32"
    )
    assert found["verdict"] == "alone"
    assert "QuickGelu" in found["words"]
