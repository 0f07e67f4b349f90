"""BatchNorm's variance is taken for a standard deviation."""

from __future__ import annotations

from conrepair.faults.edits import constant_of
from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


FAULT = Fault(
    name="deviation-for-variance",
    kind=Kind.PARAMETERS,
    provenance="onnxmltools#323, tensorflow-onnx#1726",
    repair="the tensor",
    places=nodes_with(lambda node: constant_of(node, 4) is not None, "BatchNormalization"),
    change=changed_tensor(4, lambda array, _: array**2, "{name}: its variance is squared"),
)
