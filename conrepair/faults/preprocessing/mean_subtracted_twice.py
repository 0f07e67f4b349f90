"""A mean is subtracted that the pixels don't have any more."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import dtype_of, insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import float_inputs

__all__ = ["FAULT"]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    mean = np.array(generator.uniform(0.3, 0.6), dtype_of(value))
    nodes = insert_behind(value, [("Sub", {}, [mean])], "centred")
    return Change(nodes, f"{mean:.2f} is subtracted from {value.name}")


FAULT = Fault(
    name="mean-subtracted-twice",
    kind=Kind.PREPROCESSING,
    provenance="mmdeploy#1646, open_model_zoo#1872",
    repair="leave the second subtraction away",
    places=float_inputs,
    change=_change,
)
