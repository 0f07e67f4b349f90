"""A Concat takes its inputs in another order."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import nodes_of, on_nodes
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change(editor: Editor, node: Node, _: np.random.Generator) -> str:
    editor.swap_inputs(node, 0, 1)
    return f"the first two inputs of {node.layer} are exchanged"


FAULT = Fault(
    name="branches-joined-in-another-order",
    kind=Kind.STRUCTURE,
    provenance="pytorch2keras#131",
    repair="the order of the inputs",
    native=on_nodes(nodes_of("Concat", condition=lambda _, node: len(set(node.inputs[:2])) == 2), _change),
)
