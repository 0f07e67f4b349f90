"""Two outputs of one shape change their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from benchmarks.faults.edits import graph_of
from benchmarks.faults.fault import Change, Fault, Native
from benchmarks.faults.places import sizes_of
from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import LayerGraph, Node

__all__ = ["FAULT"]


def _pairs(graph: onnx_ir.Graph) -> list[onnx_ir.Node]:
    return [node for value in graph.outputs if (node := value.producer()) is not None and _partner(graph, value)]


def _partner(graph: onnx_ir.Graph, value: onnx_ir.Value) -> onnx_ir.Value | None:
    for other in graph.outputs:
        if other is not value and other.producer() is not None and sizes_of(other)[1:] == sizes_of(value)[1:]:
            return other
    return None


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    graph = graph_of(node.outputs[0])
    value = next(value for value in node.outputs if value in graph.outputs)
    partner = _partner(graph, value)
    if partner is None:
        raise ValueError(f"{value.name} has no partner")
    one, two = (graph.outputs.index(item) for item in (value, partner))
    graph.outputs[one], graph.outputs[two] = partner, value
    value.name, partner.name = partner.name, value.name
    producers = tuple(item for value in (value, partner) if (item := value.producer()) is not None)
    return Change(producers, f"{value.name} and {partner.name} are exchanged")


def _native_partner(graph: LayerGraph, name: str) -> str | None:
    tensor = graph.tensors[name]
    for other in graph.outputs:
        if other != name and graph.tensors[other].shape == tensor.shape and tensor.shape:
            return other
    return None


def _native_pairs(graph: LayerGraph) -> Sequence[str]:
    return [name for name in graph.outputs if _native_partner(graph, name) is not None]


def _change_native(editor: Editor, place: Node | str, _: np.random.Generator) -> str:
    name = str(place)
    partner = _native_partner(editor.graph, name)
    if partner is None:
        raise ValueError(f"{name} has no partner")
    editor.exchange_outputs(editor.graph.outputs.index(name), editor.graph.outputs.index(partner))
    return f"{name} and {partner} are exchanged"


FAULT = Fault(
    name="outputs-reordered",
    kind=Kind.STRUCTURE,
    provenance="tensorflow#33303, tensorflow#51858",
    repair="the order of the outputs",
    places=_pairs,
    change=_change,
    native=Native(_native_pairs, _change_native),
)
