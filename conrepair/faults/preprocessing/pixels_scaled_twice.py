"""Pixels are divided by 255 although they were already."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import dtype_of, insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import float_inputs

__all__ = ["FAULT"]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    nodes = insert_behind(value, [("Mul", {}, [np.array(1 / 255, dtype_of(value))])], "scaled")
    return Change(nodes, f"{value.name} is divided by 255 once more")


FAULT = Fault(
    name="pixels-scaled-twice",
    kind=Kind.PREPROCESSING,
    provenance="ncnn#1472, ultralytics#24893",
    repair="leave the second scaling away",
    places=float_inputs,
    change=_change,
)
