"""Channels last are flattened as if they were first: the weights behind expect another order."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import insert_between
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import nodes_of, on_nodes, shape_of
from benchmarks.faults.places import nodes_with, rank_of
from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change_native(editor: Editor, node: Node, _: np.random.Generator) -> str:
    perm = [0, 3, 1, 2] if node.channels_last else [0, 2, 3, 1]
    editor.insert(node.inputs[0], [("Transpose", {"perm": perm}, [])], "flattened", node)
    return f"{node.layer} flattens another layout"


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    nodes = insert_between(node, 0, [("Transpose", {"perm": [0, 2, 3, 1]}, [])], "flattened")
    return Change((*nodes, node), f"{node.name} flattens channels last")


FAULT = Fault(
    name="flatten-in-another-order",
    kind=Kind.STRUCTURE,
    provenance="nn-transfer#16, MMdnn#595, onnx2keras#113",
    repair="a Transpose in front, or the weights' rows",
    places=nodes_with(lambda node: rank_of(node.inputs[0]) == 4, "Flatten", "Reshape"),
    change=_change,
    native=on_nodes(
        nodes_of("Reshape", condition=lambda graph, node: len(shape_of(graph, node.inputs[0])) == 4), _change_native
    ),
)
