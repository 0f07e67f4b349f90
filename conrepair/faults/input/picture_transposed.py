"""Height and width change places, which no shape shows in square pictures."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import image_inputs, sizes_of

__all__ = ["FAULT"]


def _squares(graph: onnx_ir.Graph) -> list[onnx_ir.Value]:
    return [value for value in image_inputs(graph) if sizes_of(value)[slice(*_axes(value))] == _side(value)]


def _axes(value: onnx_ir.Value) -> tuple[int, int]:
    return (2, 4) if sizes_of(value)[1] == 3 else (1, 3)


def _side(value: onnx_ir.Value) -> list[int | None]:
    side = sizes_of(value)[_axes(value)[0]]
    return [side, side] if side else []


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    perm = [0, 1, 3, 2] if _axes(value) == (2, 4) else [0, 2, 1, 3]
    nodes = insert_behind(value, [("Transpose", {"perm": perm}, [])], "transposed")
    return Change(nodes, f"height and width of {value.name} are exchanged")


FAULT = Fault(
    name="picture-transposed",
    kind=Kind.INPUT,
    provenance="onnx2tf#317",
    repair="the axes of the input",
    places=_squares,
    change=_change,
)
