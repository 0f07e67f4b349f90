"""A matrix is multiplied from the other side."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import constant_of
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


def _is_square(node: onnx_ir.Node) -> bool:
    array = constant_of(node, 1)
    return array is not None and array.shape[0] == array.shape[1]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    before = node.attributes["transB"].as_int() if "transB" in node.attributes else 0
    node.attributes["transB"] = onnx_ir.AttrInt64("transB", 1 - before)
    return Change((node,), f"{node.name}: transB is {1 - before}")


FAULT = Fault(
    name="product-transposed",
    kind=Kind.HYPERPARAMETERS,
    provenance="nn-transfer#16, onnx2keras#113",
    repair="transB",
    places=nodes_with(_is_square, "Gemm"),
    change=_change,
)
