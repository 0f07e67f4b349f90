"""Activations are scaled as in training."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import dtype_of, insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import is_float, nodes_with

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    nodes = insert_behind(node.outputs[0], [("Mul", {}, [np.array(1 / 0.8, dtype_of(node.outputs[0]))])], "dropout")
    return Change((node, *nodes), f"{node.name} is divided by a keep probability of 0.8")


FAULT = Fault(
    name="dropout-left-on",
    kind=Kind.GRAPH,
    provenance="rf-detr#871, weaver-core#29",
    repair="remove it",
    places=nodes_with(lambda node: is_float(node.outputs[0]), "Relu", "Clip", "Gemm", "MatMul", "Tanh"),
    change=_change,
)
