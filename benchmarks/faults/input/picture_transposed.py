"""Height and width change places, which no shape shows in square pictures."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import image_inputs, inserted_at, shape_of
from benchmarks.faults.steps import Step
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph

__all__ = ["FAULT"]


def _steps(*, channels_last: bool) -> Sequence[Step]:
    return [("Transpose", {"perm": [0, 2, 1, 3] if channels_last else [0, 1, 3, 2]}, [])]


def _squares(graph: LayerGraph) -> Sequence[str]:
    shapes = {name: shape_of(graph, name) for name in image_inputs(graph)}
    return [
        name for name, shape in shapes.items() if (shape[2] == shape[3] if shape[1] == 3 else shape[1] == shape[2])
    ]


FAULT = Fault(
    name="picture-transposed",
    kind=Kind.INPUT,
    provenance="onnx2tf#317",
    repair="the axes of the input",
    native=inserted_at(
        _squares,
        lambda shape, _: _steps(channels_last=shape[1] != 3),
        "transposed",
        "height and width of {name} are exchanged",
    ),
)
