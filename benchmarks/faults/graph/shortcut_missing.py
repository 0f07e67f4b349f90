"""A residual connection is lost."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import bypass, constant_of
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import nodes_of, on_nodes, shape_of
from benchmarks.faults.places import is_float, nodes_with
from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import LayerGraph, Node

__all__ = ["FAULT"]


def _is_residual(node: onnx_ir.Node) -> bool:
    both = all(is_float(value) and constant_of(node, index) is None for index, value in enumerate(node.inputs))
    shapes = {tuple(map(str, value.shape)) for value in node.inputs if value is not None and value.shape is not None}
    return both and len(shapes) == 1


def _native_is_residual(graph: LayerGraph, node: Node) -> bool:
    shapes = {shape_of(graph, name) for name in node.inputs}
    return len(set(node.inputs)) == 2 and len(shapes) == 1 and graph.tensors[node.outputs[0]].is_real


def _change_native(editor: Editor, node: Node, generator: np.random.Generator) -> str:
    editor.remove(node, int(generator.integers(2)))
    return f"one branch into {node.layer} is gone"


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    name = node.name
    return Change(bypass(node, int(generator.integers(2))), f"one branch into {name} is gone")


FAULT = Fault(
    name="shortcut-missing",
    kind=Kind.GRAPH,
    provenance="onnx-mlir#20, tvm#17835",
    repair="insert it",
    places=nodes_with(_is_residual, "Add"),
    change=_change,
    native=on_nodes(nodes_of("Add", condition=_native_is_residual), _change_native),
)
