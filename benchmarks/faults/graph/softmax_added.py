"""Scores are normalized though the source gives them as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from benchmarks.faults.edits import insert_behind
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import float_outputs, inserted_at
from benchmarks.faults.places import is_float, rank_of
from conrepair.editors.editor import Step
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import LayerGraph

__all__ = ["FAULT"]

_STEPS: Sequence[Step] = [("Softmax", {"axis": -1}, [])]


def _scores(graph: onnx_ir.Graph) -> list[onnx_ir.Value]:
    return [value for value in graph.outputs if rank_of(value) == 2 and is_float(value) and not _is_softmax(value)]


def _is_softmax(value: onnx_ir.Value) -> bool:
    producer = value.producer()
    return producer is not None and producer.op_type == "Softmax"


def _native_scores(graph: LayerGraph) -> Sequence[str]:
    return [name for name in float_outputs(2)(graph) if graph.producers[name].op != "Softmax"]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    nodes = insert_behind(value, _STEPS, "normalized")
    return Change(nodes, f"a softmax follows {value.name}")


FAULT = Fault(
    name="softmax-added",
    kind=Kind.GRAPH,
    provenance="nobuco#9, onnx2tf#942",
    repair="remove it",
    places=_scores,
    change=_change,
    native=inserted_at(_native_scores, lambda *_: _STEPS, "normalized", "a softmax follows {name}"),
)
