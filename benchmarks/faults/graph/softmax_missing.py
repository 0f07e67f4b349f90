"""The last softmax is lost."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import bypass
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import nodes_of, on_nodes
from benchmarks.faults.places import nodes_with
from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change_native(editor: Editor, node: Node, _: np.random.Generator) -> str:
    editor.remove(node)
    return f"{node.op} of {node.layer} is gone"


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
    native=on_nodes(
        nodes_of("Softmax", "LogSoftmax", "Sigmoid", condition=lambda graph, node: node.outputs[0] in graph.outputs),
        _change_native,
    ),
)
