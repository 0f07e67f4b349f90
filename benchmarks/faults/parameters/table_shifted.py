"""The rows of an embedding are off by one."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import parameter_changed
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array

__all__ = ["FAULT"]

_WORDS = "the table of {name} is shifted by one row"


def _shifted(array: Array, _: np.random.Generator) -> Array:
    return np.roll(array, 1, axis=0)


FAULT = Fault(
    name="table-shifted",
    kind=Kind.PARAMETERS,
    provenance="onnx#3992 (a row for padding)",
    repair="the table",
    native=parameter_changed({"Gather": "table"}, _shifted, _WORDS, lambda array: array.ndim == 2 and len(array) > 1),
)
