"""An activation is lost, as one that was fused with its neighbour."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import ACTIVATIONS, nodes_of, on_nodes
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]


def _change(editor: Editor, node: Node, _: np.random.Generator) -> str:
    editor.remove(node)
    return f"{node.op} of {node.layer} is gone"


FAULT = Fault(
    name="activation-missing",
    kind=Kind.GRAPH,
    provenance="docs/measured/converter-faults.md (tf2onnx: RELU_N1_TO_1), tensorflow-onnx#914",
    repair="insert it",
    native=on_nodes(nodes_of(*ACTIVATIONS), _change),
)
