"""A residual connection is lost."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import nodes_of, on_nodes, shape_of
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node

__all__ = ["FAULT"]


def _is_residual(graph: LayerGraph, node: Node) -> bool:
    shapes = {shape_of(graph, name) for name in node.inputs}
    return len(set(node.inputs)) == 2 and len(shapes) == 1 and graph.tensors[node.outputs[0]].is_real


def _change(editor: Editor, node: Node, generator: np.random.Generator) -> str:
    editor.remove(node, int(generator.integers(2)))
    return f"one branch into {node.layer} is gone"


FAULT = Fault(
    name="shortcut-missing",
    kind=Kind.GRAPH,
    provenance="onnx-mlir#20, tvm#17835",
    repair="insert it",
    native=on_nodes(nodes_of("Add", condition=_is_residual), _change),
)
