"""A Concat takes its inputs in another order."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import swap_inputs
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import nodes_of, on_nodes
from benchmarks.faults.places import nodes_with
from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change_native(editor: Editor, node: Node, _: np.random.Generator) -> str:
    editor.swap_inputs(node, 0, 1)
    return f"the first two inputs of {node.layer} are exchanged"


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    swap_inputs(node, 0, 1)
    return Change((node,), f"the first two inputs of {node.name} are exchanged")


FAULT = Fault(
    name="branches-joined-in-another-order",
    kind=Kind.STRUCTURE,
    provenance="pytorch2keras#131",
    repair="the order of the inputs",
    places=nodes_with(lambda node: len(node.inputs) > 1 and node.inputs[0] is not node.inputs[1], "Concat"),
    change=_change,
    native=on_nodes(nodes_of("Concat", condition=lambda _, node: len(set(node.inputs[:2])) == 2), _change_native),
)
