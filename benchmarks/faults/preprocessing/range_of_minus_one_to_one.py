"""Inputs of 0 to 1 are taken to be wanted as -1 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir

from benchmarks.faults.edits import dtype_of, insert_behind
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import float_inputs as float_inputs_native
from benchmarks.faults.native import inserted_at
from benchmarks.faults.places import float_inputs
from conrepair.editors.editor import Step
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _steps(dtype: np.dtype[Any]) -> Sequence[Step]:
    return [("Mul", {}, [np.array(2, dtype)]), ("Sub", {}, [np.array(1, dtype)])]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    nodes = insert_behind(value, _steps(dtype_of(value)), "ranged")
    return Change(nodes, f"{value.name} becomes 2 x - 1")


FAULT = Fault(
    name="range-of-minus-one-to-one",
    kind=Kind.PREPROCESSING,
    provenance="MNN#638, openvino#11942",
    repair="the recipe's scale and mean",
    places=float_inputs,
    change=_change,
    native=inserted_at(
        float_inputs_native, lambda *_: _steps(np.dtype(np.float32)), "ranged", "{name} becomes 2 x - 1"
    ),
)
