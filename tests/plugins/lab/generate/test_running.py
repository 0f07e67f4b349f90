"""ONNX Runtime is given what NumPy has from elsewhere, and gives it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest

from conrepair_lab.generate.onnx_form import run

HEAD = '<ir_version: 10, opset_import: ["" : 20]> '
X = np.array([1.5, -2.0], ml_dtypes.bfloat16)
TURNED = "g (bfloat16[2] x) => (bfloat16[2] y, float[2] z) { y = Identity (x) z = Cast <to = 1> (y) }"
SHOWN = "g (bfloat16[2] x) => (bfloat16[2] x, float[2] z) { z = Cast <to = 1> (x) }"
HELD = "g (bfloat16[2] x) => (bfloat16[2] w, float[2] z) <bfloat16[2] w = {3, 5}> { z = Cast <to = 1> (x) }"


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize(("text", "first"), [(TURNED, X), (SHOWN, X), (HELD, X[:1])])
def test_bfloat16_goes_in_and_comes_out(text: str, first: np.ndarray, *, typed: bool) -> None:
    model = onnx.parser.parse_model(HEAD + text)
    for tensor in model.graph.initializer:  # the parser has no numbers of that type
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.resize(first, 2), tensor.name))
    names = [item.name for item in model.graph.output]
    if not typed:
        for item in model.graph.output:
            item.ClearField("type")
    found = run(model, {"x": X}, names)
    assert [array.dtype.name for array in found.values()] == ["bfloat16", "float32"]
    np.testing.assert_array_equal(found[names[0]].astype(np.float32), np.resize(first, 2).astype(np.float32))
    np.testing.assert_array_equal(found["z"], [1.5, -2.0])
