"""Two outputs of one shape change their names."""

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
    for other in graph.outputs:
        if other != name and graph.tensors[other].shape == tensor.shape and tensor.shape:
            return other
    return None


def _pairs(graph: LayerGraph) -> Sequence[str]:
    return [name for name in graph.outputs if _partner(graph, name) is not None]


def _change(editor: Editor, place: Node | str, _: np.random.Generator) -> str:
    name = str(place)
    partner = _partner(editor.graph, name)
    if partner is None:
        raise ValueError(f"{name} has no partner")
    editor.exchange_outputs(editor.graph.outputs.index(name), editor.graph.outputs.index(partner))
    return f"{name} and {partner} are exchanged"


FAULT = Fault(
    name="outputs-reordered",
    kind=Kind.STRUCTURE,
    provenance="tensorflow#33303, tensorflow#51858",
    repair="the order of the outputs",
    native=Native(_pairs, _change),
)
