"""A clipping from zero up (ReLU6) is a rectifier without an upper bound."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import constant_of
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.places import nodes_with
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _is_bounded(node: onnx_ir.Node) -> bool:
    low, high = constant_of(node, 1), constant_of(node, 2)
    return low is not None and high is not None and not low.any()


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    node.op_type = "Relu"
    node.resize_inputs(1)
    return Change((node,), f"{node.name} has no upper bound")


FAULT = Fault(
    name="upper-bound-lost",
    kind=Kind.HYPERPARAMETERS,
    provenance="MMdnn#798, onnx2keras#167",
    repair="the bound",
    places=nodes_with(_is_bounded, "Clip"),
    change=_change,
)
