"""The mean that BatchNorm subtracts is lost."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import constant_of, numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 3)
    set_constant(node, 3, np.zeros_like(array))
    return Change((node,), f"{node.name}: its mean is zero")


FAULT = Fault(
    name="moving-mean-lost",
    kind=Kind.PARAMETERS,
    provenance="tensorflow-onnx#1726",
    repair="the tensor",
    places=nodes_with(lambda node: constant_of(node, 3) is not None, "BatchNormalization"),
    change=_change,
)
