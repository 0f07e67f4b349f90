"""The operands of a difference or quotient change places."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import nodes_of, on_nodes
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node

__all__ = ["FAULT"]

_OPERATORS = ("Sub", "Div", "Pow")


def _differ(_: LayerGraph, node: Node) -> bool:
    return len(set(node.inputs)) == 2 or "operand" in node.parameters


def _change(editor: Editor, node: Node, _: np.random.Generator) -> str:
    if "operand" in node.parameters:
        editor.set_attributes(node, {"constant_first": not node.attributes["constant_first"]})
    else:
        editor.swap_inputs(node, 0, 1)
    return f"the operands of {node.layer} are exchanged"


FAULT = Fault(
    name="operands-exchanged",
    kind=Kind.GRAPH,
    provenance="onnxruntime#26997",
    repair="their order",
    native=on_nodes(nodes_of(*_OPERATORS, condition=_differ), _change),
)
