"""A BatchNormalization is neither there nor folded into its neighbour."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import bypass
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import nodes_of, on_nodes
from benchmarks.faults.places import operators
from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change_native(editor: Editor, node: Node, _: np.random.Generator) -> str:
    editor.remove(node)
    return f"{node.layer} is gone"


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    name = node.name
    return Change(bypass(node), f"{name} is gone")


FAULT = Fault(
    name="normalization-missing",
    kind=Kind.GRAPH,
    provenance="pytorch#18525, onnxmltools#323",
    repair="insert it",
    places=operators("BatchNormalization", "InstanceNormalization", "LayerNormalization"),
    change=_change,
    native=on_nodes(nodes_of("BatchNormalization", "InstanceNormalization", "LayerNormalization"), _change_native),
)
