"""Convolution for correlation: kernels are turned by 180 degrees."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 1)
    set_constant(node, 1, array[:, :, ::-1, ::-1])
    return Change((node,), f"the weights of {node.name} are turned around")


FAULT = Fault(
    name="kernel-flipped",
    kind=Kind.PARAMETERS,
    provenance="keras-onnx#555, tvm#18601",
    repair="the kernels' spatial axes",
    places=weights(lambda array: array.ndim == 4 and array.shape[2] * array.shape[3] > 1),
    change=_change,
)
