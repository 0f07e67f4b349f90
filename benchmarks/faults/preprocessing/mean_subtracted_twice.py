"""A mean is subtracted that the pixels don't have any more."""

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


def _steps(dtype: np.dtype[Any], generator: np.random.Generator) -> Sequence[Step]:
    return [("Sub", {}, [np.array(generator.uniform(0.3, 0.6), dtype)])]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    steps = _steps(dtype_of(value), generator)
    nodes = insert_behind(value, steps, "centred")
    return Change(nodes, f"{steps[0][2][0]:.2f} is subtracted from {value.name}")


FAULT = Fault(
    name="mean-subtracted-twice",
    kind=Kind.PREPROCESSING,
    provenance="mmdeploy#1646, open_model_zoo#1872",
    repair="leave the second subtraction away",
    places=float_inputs,
    change=_change,
    native=inserted_at(
        float_inputs_native,
        lambda _, generator: _steps(np.dtype(np.float32), generator),
        "centred",
        "a mean is subtracted from {name}",
    ),
)
