"""A square matrix is written down transposed."""

from __future__ import annotations

from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


FAULT = Fault(
    name="matrix-transposed",
    kind=Kind.PARAMETERS,
    provenance="onnx2keras#113, nn-transfer#16",
    repair="transpose the matrix",
    places=weights(lambda array: array.ndim == 2 and array.shape[0] == array.shape[1]),
    change=changed_tensor(1, lambda array, _: array.T, "the weights of {name} are transposed"),
)
