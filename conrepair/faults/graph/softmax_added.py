"""Scores are normalized though the source gives them as they are."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import is_float, rank_of

__all__ = ["FAULT"]


def _scores(graph: onnx_ir.Graph) -> list[onnx_ir.Value]:
    return [value for value in graph.outputs if rank_of(value) == 2 and is_float(value) and not _is_softmax(value)]


def _is_softmax(value: onnx_ir.Value) -> bool:
    producer = value.producer()
    return producer is not None and producer.op_type == "Softmax"


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    nodes = insert_behind(value, [("Softmax", {"axis": -1}, [])], "normalized")
    return Change(nodes, f"a softmax follows {value.name}")


FAULT = Fault(
    name="softmax-added",
    kind=Kind.GRAPH,
    provenance="nobuco#9, onnx2tf#942",
    repair="remove it",
    places=_scores,
    change=_change,
)
