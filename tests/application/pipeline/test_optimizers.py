"""A file that a runtime's optimization makes give something else, and which one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import conrepair
from conrepair.verdicts.evaluate.verdict import Verdict

PADDED = """
<ir_version: 8, opset_import: ["" : 13]>
g (float[N, 3, 10, 10] x) => (float[N, 4, 5, 5] y)
<float[4, 3, 3, 3] w, int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}, float zero = {0.0}>
{
    c = Conv (x, w)
    n = Neg (c)
    p = Pad (n, pads, zero)
    y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (p)
}
"""


def saved(folder: Path, *, negative: bool) -> Path:
    """Pooling of what's negative: ONNX Runtime pads with the lowest number in place of 0."""
    model = parser.parse_model(PADDED if negative else PADDED.replace("Neg", "Relu"))
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.abs(weights), "w"))
    onnx.save(onnx.shape_inference.infer_shapes(model), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize("negative", [True, False])
def test_a_wrong_optimization_is_named(tmp_path: Path, negative: bool) -> None:
    done = conrepair.execute(saved(tmp_path, negative=negative), backend="onnxruntime")
    assert done.verdict is (Verdict.FAULTY if negative else Verdict.EQUIVALENT)
    assert ("without the optimization `Pad_Fusion` of ONNX Runtime" in done.row.reason) is negative
