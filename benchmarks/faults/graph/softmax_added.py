"""Scores are normalized though the source gives them as they are."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import float_outputs, inserted_at
from benchmarks.faults.steps import Step
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph

__all__ = ["FAULT"]

_STEPS: Sequence[Step] = [("Softmax", {"axis": -1}, [])]


def _scores(graph: LayerGraph) -> Sequence[str]:
    return [name for name in float_outputs(2)(graph) if graph.producers[name].op != "Softmax"]


FAULT = Fault(
    name="softmax-added",
    kind=Kind.GRAPH,
    provenance="nobuco#9, onnx2tf#942",
    repair="remove it",
    native=inserted_at(_scores, lambda *_: _STEPS, "normalized", "a softmax follows {name}"),
)
