"""The rows of an embedding are off by one."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import constant_of
from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


def _is_table(node: onnx_ir.Node) -> bool:
    array = constant_of(node, 0)
    return array is not None and array.ndim == 2 and array.dtype.kind == "f" and len(array) > 1


FAULT = Fault(
    name="table-shifted",
    kind=Kind.PARAMETERS,
    provenance="onnx#3992 (a row for padding)",
    repair="the table",
    places=nodes_with(_is_table, "Gather"),
    change=changed_tensor(0, lambda array, _: np.roll(array, 1, axis=0), "the table of {name} is shifted by one row"),
)
