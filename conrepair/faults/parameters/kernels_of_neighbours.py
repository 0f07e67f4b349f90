"""Input channels of a convolution are exchanged."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 1)
    set_constant(node, 1, array[:, np.roll(np.arange(array.shape[1]), 1)])
    return Change((node,), f"the weights of {node.name} have their input channels rotated")


FAULT = Fault(
    name="kernels-of-neighbours",
    kind=Kind.PARAMETERS,
    provenance="onnx2tf#105",
    repair="the order of the input channels",
    places=weights(lambda array: array.ndim == 4 and array.shape[1] > 1),
    change=_change,
)
