"""Pixels are divided by 255 although they were already."""

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
    return [("Mul", {}, [np.array(1 / 255, dtype)])]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    nodes = insert_behind(value, _steps(dtype_of(value)), "scaled")
    return Change(nodes, f"{value.name} is divided by 255 once more")


FAULT = Fault(
    name="pixels-scaled-twice",
    kind=Kind.PREPROCESSING,
    provenance="ncnn#1472, ultralytics#24893",
    repair="leave the second scaling away",
    places=float_inputs,
    change=_change,
    native=inserted_at(
        float_inputs_native, lambda *_: _steps(np.dtype(np.float32)), "scaled", "{name} is divided by 255 once more"
    ),
)
