"""A matrix is multiplied from the other side."""

from __future__ import annotations

import onnx_ir

from benchmarks.faults.edits import constant_of
from benchmarks.faults.families import flipped
from benchmarks.faults.fault import Fault
from benchmarks.faults.places import nodes_with
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _is_square(node: onnx_ir.Node) -> bool:
    array = constant_of(node, 1)
    return array is not None and array.shape[0] == array.shape[1]


FAULT = Fault(
    name="product-transposed",
    kind=Kind.HYPERPARAMETERS,
    provenance="nn-transfer#16, onnx2keras#113",
    repair="transB",
    places=nodes_with(_is_square, "Gemm"),
    change=flipped("transB"),
)
