"""Red and blue change places."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import image_inputs, sizes_of

__all__ = ["FAULT"]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    axis = 1 if sizes_of(value)[1] == 3 else 3
    nodes = insert_behind(value, [("Gather", {"axis": axis}, [np.array([2, 1, 0])])], "swapped")
    return Change(nodes, f"the channels of {value.name} are reversed")


FAULT = Fault(
    name="channels-swapped",
    kind=Kind.PREPROCESSING,
    provenance="tensorflow/models#9413, ultralytics#24893",
    repair="the recipe's channel order",
    places=image_inputs,
    change=_change,
)
