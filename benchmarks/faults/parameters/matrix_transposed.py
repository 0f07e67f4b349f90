"""A square matrix is written down transposed."""

from __future__ import annotations

from benchmarks.faults.families import weights_fault

__all__ = ["FAULT"]


FAULT = weights_fault(
    "matrix-transposed",
    provenance="onnx2keras#113, nn-transfer#16",
    repair="transpose the matrix",
    compute=lambda array, _: array.T,
    words="the weights of {name} are transposed",
    condition=lambda array: array.ndim == 2 and array.shape[0] == array.shape[1],
)
