"""The rows of an embedding are off by one."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import constant_of, numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


def _is_table(node: onnx_ir.Node) -> bool:
    array = constant_of(node, 0)
    return array is not None and array.ndim == 2 and array.dtype.kind == "f" and len(array) > 1


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 0)
    set_constant(node, 0, np.roll(array, 1, axis=0))
    return Change((node,), f"the table of {node.name} is shifted by one row")


FAULT = Fault(
    name="table-shifted",
    kind=Kind.PARAMETERS,
    provenance="onnx#3992 (a row for padding)",
    repair="the table",
    places=nodes_with(_is_table, "Gather"),
    change=_change,
)
