"""Whether ONNX Runtime's products of eight bits are exact on this processor.

Without instructions for them (VNNI) it adds two products of uint8 and int8 in sixteen bits, where they saturate: what
it answers of a quantized network is then no truth to compare with.
"""

from __future__ import annotations

import functools

import numpy as np
import onnx
import onnxruntime
import pytest

__all__ = ["exact_products"]


@functools.cache
def _saturates() -> bool:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (uint8[1, 64] x, int8[64, 16] w) => (int32[1, 16] y) '
        "{ y = MatMulInteger (x, w) }"
    )
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"x": np.full((1, 64), 255, np.uint8), "w": np.full((64, 16), 127, np.int8)}
    (found,) = session.run(None, feeds)
    return bool((found != 64 * 255 * 127).any())


exact_products = pytest.mark.skipif(
    _saturates(), reason="ONNX Runtime's products of eight bits saturate on this processor"
)
