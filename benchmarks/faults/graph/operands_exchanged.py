"""The operands of a difference or quotient change places."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import swap_inputs
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import nodes_of, on_nodes
from benchmarks.faults.places import is_float, nodes_with
from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node

__all__ = ["FAULT"]

_OPERATORS = ("Sub", "Div", "Pow")


def _differ(node: onnx_ir.Node) -> bool:
    return is_float(node.outputs[0]) and node.inputs[0] is not node.inputs[1]


def _change_native(editor: Editor, node: Node, _: np.random.Generator) -> str:
    editor.swap_inputs(node, 0, 1)
    return f"the operands of {node.layer} are exchanged"


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    swap_inputs(node, 0, 1)
    return Change((node,), f"the operands of {node.name} are exchanged")


FAULT = Fault(
    name="operands-exchanged",
    kind=Kind.GRAPH,
    provenance="onnxruntime#26997",
    repair="their order",
    places=nodes_with(_differ, *_OPERATORS),
    change=_change,
    native=on_nodes(nodes_of(*_OPERATORS, condition=lambda _, node: len(set(node.inputs)) == 2), _change_native),
)
