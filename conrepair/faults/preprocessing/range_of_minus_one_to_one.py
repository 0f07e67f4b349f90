"""Inputs of 0 to 1 are taken to be wanted as -1 to 1."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import dtype_of, insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import float_inputs

__all__ = ["FAULT"]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    two, one = (np.array(number, dtype_of(value)) for number in (2, 1))
    nodes = insert_behind(value, [("Mul", {}, [two]), ("Sub", {}, [one])], "ranged")
    return Change(nodes, f"{value.name} becomes 2 x - 1")


FAULT = Fault(
    name="range-of-minus-one-to-one",
    kind=Kind.PREPROCESSING,
    provenance="MNN#638, openvino#11942",
    repair="the recipe's scale and mean",
    places=float_inputs,
    change=_change,
)
