"""The last softmax is lost."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import bypass
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    name, operator = node.name, node.op_type
    return Change(bypass(node), f"{operator} {name} is gone")


FAULT = Fault(
    name="softmax-missing",
    kind=Kind.GRAPH,
    provenance="nobuco#9",
    repair="insert it",
    places=nodes_with(lambda node: node.outputs[0].is_graph_output(), "Softmax", "LogSoftmax", "Sigmoid"),
    change=_change,
)
