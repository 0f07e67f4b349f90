"""Red and blue change places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from benchmarks.faults.edits import insert_behind
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import image_inputs as image_inputs_native
from benchmarks.faults.native import inserted_at
from benchmarks.faults.places import image_inputs, sizes_of
from conrepair.editors.editor import Step
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _steps(axis: int) -> Sequence[Step]:
    return [("Gather", {"axis": axis}, [np.array([2, 1, 0])])]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    axis = 1 if sizes_of(value)[1] == 3 else 3
    nodes = insert_behind(value, _steps(axis), "swapped")
    return Change(nodes, f"the channels of {value.name} are reversed")


FAULT = Fault(
    name="channels-swapped",
    kind=Kind.PREPROCESSING,
    provenance="tensorflow/models#9413, ultralytics#24893",
    repair="the recipe's channel order",
    places=image_inputs,
    change=_change,
    native=inserted_at(
        image_inputs_native,
        lambda shape, _: _steps(1 if shape[1] == 3 else 3),
        "swapped",
        "the channels of {name} are reversed",
    ),
)
