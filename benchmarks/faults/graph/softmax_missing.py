"""The last softmax is lost."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import nodes_of, on_nodes
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change(editor: Editor, node: Node, _: np.random.Generator) -> str:
    editor.remove(node)
    return f"{node.op} of {node.layer} is gone"


FAULT = Fault(
    name="softmax-missing",
    kind=Kind.GRAPH,
    provenance="nobuco#9",
    repair="insert it",
    native=on_nodes(
        nodes_of("Softmax", "LogSoftmax", "Sigmoid", condition=lambda graph, node: node.outputs[0] in graph.outputs),
        _change,
    ),
)
