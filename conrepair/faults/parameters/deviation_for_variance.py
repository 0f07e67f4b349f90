"""BatchNorm's variance is taken for a standard deviation."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import constant_of, numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 4)
    set_constant(node, 4, array**2)
    return Change((node,), f"{node.name}: its variance is squared")


FAULT = Fault(
    name="deviation-for-variance",
    kind=Kind.PARAMETERS,
    provenance="onnxmltools#323, tensorflow-onnx#1726",
    repair="the tensor",
    places=nodes_with(lambda node: constant_of(node, 4) is not None, "BatchNormalization"),
    change=_change,
)
