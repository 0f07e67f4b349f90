"""The axes of square kernels are exchanged."""

from __future__ import annotations

from benchmarks.faults.families import weights_fault

__all__ = ["FAULT"]


FAULT = weights_fault(
    "kernel-transposed",
    provenance="onnx2tf#317 (equal dimensions)",
    repair="the kernels' spatial axes",
    compute=lambda array, _: array.swapaxes(2, 3),
    words="the weights of {name} have rows and columns exchanged",
    condition=lambda array: array.ndim == 4 and array.shape[2] == array.shape[3] > 1,
)
