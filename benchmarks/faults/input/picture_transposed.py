"""Height and width change places, which no shape shows in square pictures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from benchmarks.faults.edits import insert_behind
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import image_inputs as image_inputs_native
from benchmarks.faults.native import inserted_at, shape_of
from benchmarks.faults.places import image_inputs, sizes_of
from conrepair.editors.editor import Step
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import LayerGraph

__all__ = ["FAULT"]


def _squares(graph: onnx_ir.Graph) -> list[onnx_ir.Value]:
    return [value for value in image_inputs(graph) if sizes_of(value)[slice(*_axes(value))] == _side(value)]


def _axes(value: onnx_ir.Value) -> tuple[int, int]:
    return (2, 4) if sizes_of(value)[1] == 3 else (1, 3)


def _side(value: onnx_ir.Value) -> list[int | None]:
    side = sizes_of(value)[_axes(value)[0]]
    return [side, side] if side else []


def _steps(*, channels_last: bool) -> Sequence[Step]:
    return [("Transpose", {"perm": [0, 2, 1, 3] if channels_last else [0, 1, 3, 2]}, [])]


def _native_squares(graph: LayerGraph) -> Sequence[str]:
    shapes = {name: shape_of(graph, name) for name in image_inputs_native(graph)}
    return [
        name for name, shape in shapes.items() if (shape[2] == shape[3] if shape[1] == 3 else shape[1] == shape[2])
    ]


def _change(value: onnx_ir.Value, generator: np.random.Generator) -> Change:
    nodes = insert_behind(value, _steps(channels_last=_axes(value) != (2, 4)), "transposed")
    return Change(nodes, f"height and width of {value.name} are exchanged")


FAULT = Fault(
    name="picture-transposed",
    kind=Kind.INPUT,
    provenance="onnx2tf#317",
    repair="the axes of the input",
    places=_squares,
    change=_change,
    native=inserted_at(
        _native_squares,
        lambda shape, _: _steps(channels_last=shape[1] != 3),
        "transposed",
        "height and width of {name} are exchanged",
    ),
)
