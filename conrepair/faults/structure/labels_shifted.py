"""The classes are off by one, as between 1000 and 1001 of them."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import is_float, rank_of, sizes_of

__all__ = ["FAULT"]


def _scores(graph: onnx_ir.Graph) -> list[onnx_ir.Value]:
    return [value for value in graph.outputs if rank_of(value) == 2 and is_float(value) and sizes_of(value)[1]]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    order = np.roll(np.arange(sizes_of(value)[1] or 1), 1)
    nodes = insert_behind(value, [("Gather", {"axis": 1}, [order])], "shifted")
    return Change(nodes, f"the classes of {value.name} are shifted by one")


FAULT = Fault(
    name="labels-shifted",
    kind=Kind.STRUCTURE,
    provenance="tensorflow/models#9413 (a background class), open_model_zoo#1872",
    repair="the labels",
    places=_scores,
    change=_change,
)
