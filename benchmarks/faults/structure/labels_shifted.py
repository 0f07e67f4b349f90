"""The classes are off by one, as between 1000 and 1001 of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from benchmarks.faults.edits import insert_behind
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import float_outputs, inserted_at
from benchmarks.faults.places import is_float, rank_of, sizes_of
from conrepair.editors.editor import Step
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _scores(graph: onnx_ir.Graph) -> list[onnx_ir.Value]:
    return [value for value in graph.outputs if rank_of(value) == 2 and is_float(value) and sizes_of(value)[1]]


def _steps(classes: int) -> Sequence[Step]:
    return [("Gather", {"axis": 1}, [np.roll(np.arange(classes), 1)])]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    nodes = insert_behind(value, _steps(sizes_of(value)[1] or 1), "shifted")
    return Change(nodes, f"the classes of {value.name} are shifted by one")


FAULT = Fault(
    name="labels-shifted",
    kind=Kind.STRUCTURE,
    provenance="tensorflow/models#9413 (a background class), open_model_zoo#1872",
    repair="the labels",
    places=_scores,
    change=_change,
    native=inserted_at(
        float_outputs(2), lambda shape, _: _steps(shape[1]), "shifted", "the classes of {name} are shifted by one"
    ),
)
