"""Channels last are flattened as if they were first: the weights behind expect another order."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import nodes_of, on_nodes, shape_of
from benchmarks.faults.steps import insert
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change(editor: Editor, node: Node, _: np.random.Generator) -> str:
    perm = [0, 3, 1, 2] if node.channels_last else [0, 2, 3, 1]
    insert(editor, node.inputs[0], [("Transpose", {"perm": perm}, [])], "flattened", node)
    return f"{node.layer} flattens another layout"


FAULT = Fault(
    name="flatten-in-another-order",
    kind=Kind.STRUCTURE,
    provenance="nn-transfer#16, MMdnn#595, onnx2keras#113",
    repair="a Transpose in front, or the weights' rows",
    native=on_nodes(
        nodes_of("Reshape", condition=lambda graph, node: len(shape_of(graph, node.inputs[0])) == 4), _change
    ),
)
