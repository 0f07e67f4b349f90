"""A matrix is multiplied from the other side."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node

__all__ = ["FAULT"]


def _is_turnable(_: LayerGraph, node: Node) -> bool:
    """Whether the file says how a square matrix lies."""
    return "transB" in node.written and len(set(node.parameters["weight"].shape)) == 1


FAULT = Fault(
    name="product-transposed",
    kind=Kind.HYPERPARAMETERS,
    provenance="nn-transfer#16, onnx2keras#113",
    repair="transB",
    native=attributes_changed(("MatMul",), lambda node, _: {"transB": not node.written["transB"]}, _is_turnable),
)
