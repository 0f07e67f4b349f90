"""Two inputs of one shape are taken for one another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault, Native
from benchmarks.faults.places import rank_of, sizes_of
from conrepair.editors.editor import Editor
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import LayerGraph, Node

__all__ = ["FAULT"]


def _pairs(graph: onnx_ir.Graph) -> list[onnx_ir.Value]:
    return [value for value in graph.inputs if value.uses() and _partner(graph, value) is not None]


def _partner(graph: onnx_ir.Graph, value: onnx_ir.Value) -> onnx_ir.Value | None:
    """Of the same type and shape; not the batch's name, which may be any."""
    for other in graph.inputs:
        alike = other.dtype == value.dtype and sizes_of(other)[1:] == sizes_of(value)[1:]
        if other is not value and other.uses() and alike and rank_of(other) == rank_of(value):
            return other
    return None


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    graph = value.graph
    partner = None if graph is None else _partner(graph, value)
    if partner is None:
        raise ValueError(f"{value.name} has no partner")
    uses = [[(use.node, use.idx) for use in item.uses()] for item in (value, partner)]
    for places, source in zip(uses, (partner, value), strict=True):
        for node, index in places:
            node.replace_input_with(index, source)
    readers = dict.fromkeys(node for places in uses for node, _ in places)
    return Change(tuple(readers), f"{value.name} and {partner.name} are exchanged")


def _native_partner(graph: LayerGraph, name: str) -> str | None:
    tensor = graph.tensors[name]
    for other in graph.inputs:
        alike = graph.tensors[other].shape == tensor.shape and graph.tensors[other].dtype == tensor.dtype
        if other != name and alike and graph.consumers[other]:
            return other
    return None


def _native_pairs(graph: LayerGraph) -> Sequence[str]:
    return [name for name in graph.inputs if graph.consumers[name] and _native_partner(graph, name) is not None]


def _change_native(editor: Editor, place: Node | str, _: np.random.Generator) -> str:
    name = str(place)
    partner = _native_partner(editor.graph, name)
    if partner is None:
        raise ValueError(f"{name} has no partner")
    editor.exchange_inputs(editor.graph.inputs.index(name), editor.graph.inputs.index(partner))
    return f"{name} and {partner} are exchanged"


FAULT = Fault(
    name="inputs-reordered",
    kind=Kind.INPUT,
    provenance="tensorflow#33303, tensorflow#55242, nobuco#37",
    repair="the order of the inputs",
    places=_pairs,
    change=_change,
    native=Native(_native_pairs, _change_native),
)
