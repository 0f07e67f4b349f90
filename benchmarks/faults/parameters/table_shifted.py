"""The rows of an embedding are off by one."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import Array, constant_of
from benchmarks.faults.families import changed_tensor
from benchmarks.faults.fault import Fault
from benchmarks.faults.native import parameter_changed
from benchmarks.faults.places import nodes_with
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]

_WORDS = "the table of {name} is shifted by one row"


def _is_table(node: onnx_ir.Node) -> bool:
    array = constant_of(node, 0)
    return array is not None and array.ndim == 2 and array.dtype.kind == "f" and len(array) > 1


def _shifted(array: Array, _: np.random.Generator) -> Array:
    return np.roll(array, 1, axis=0)


FAULT = Fault(
    name="table-shifted",
    kind=Kind.PARAMETERS,
    provenance="onnx#3992 (a row for padding)",
    repair="the table",
    places=nodes_with(_is_table, "Gather"),
    change=changed_tensor(0, _shifted, _WORDS),
    native=parameter_changed({"Gather": "table"}, _shifted, _WORDS, lambda array: array.ndim == 2 and len(array) > 1),
)
