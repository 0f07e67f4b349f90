"""The axes of square kernels are exchanged."""

from __future__ import annotations

from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


FAULT = Fault(
    name="kernel-transposed",
    kind=Kind.PARAMETERS,
    provenance="onnx2tf#317 (equal dimensions)",
    repair="the kernels' spatial axes",
    places=weights(lambda array: array.ndim == 4 and array.shape[2] == array.shape[3] > 1),
    change=changed_tensor(
        1, lambda array, _: array.swapaxes(2, 3), "the weights of {name} have rows and columns exchanged"
    ),
)
