"""Two inputs of one shape are taken for one another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.faults.fault import Fault, Native
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node

__all__ = ["FAULT"]


def _partner(graph: LayerGraph, name: str) -> str | None:
    tensor = graph.tensors[name]
    for other in graph.inputs:
        alike = graph.tensors[other].shape == tensor.shape and graph.tensors[other].dtype == tensor.dtype
        if other != name and alike and graph.consumers[other]:
            return other
    return None


def _pairs(graph: LayerGraph) -> Sequence[str]:
    return [name for name in graph.inputs if graph.consumers[name] and _partner(graph, name) is not None]


def _change(editor: Editor, place: Node | str, _: np.random.Generator) -> str:
    name = str(place)
    partner = _partner(editor.graph, name)
    if partner is None:
        raise ValueError(f"{name} has no partner")
    editor.exchange_inputs(editor.graph.inputs.index(name), editor.graph.inputs.index(partner))
    return f"{name} and {partner} are exchanged"


FAULT = Fault(
    name="inputs-reordered",
    kind=Kind.INPUT,
    provenance="tensorflow#33303, tensorflow#55242, nobuco#37",
    repair="the order of the inputs",
    native=Native(_pairs, _change),
)
