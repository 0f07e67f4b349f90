"""A square matrix is written down transposed."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 1)
    set_constant(node, 1, array.T)
    return Change((node,), f"the weights of {node.name} are transposed")


FAULT = Fault(
    name="matrix-transposed",
    kind=Kind.PARAMETERS,
    provenance="onnx2keras#113, nn-transfer#16",
    repair="transpose the matrix",
    places=weights(lambda array: array.ndim == 2 and array.shape[0] == array.shape[1]),
    change=_change,
)
