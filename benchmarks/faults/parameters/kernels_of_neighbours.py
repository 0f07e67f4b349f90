"""Input channels of a convolution are exchanged."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import weights_fault

__all__ = ["FAULT"]


FAULT = weights_fault(
    "kernels-of-neighbours",
    provenance="onnx2tf#105",
    repair="the order of the input channels",
    compute=lambda array, _: array[:, np.roll(np.arange(array.shape[1]), 1)],
    words="the weights of {name} have their input channels rotated",
    condition=lambda array: array.ndim == 4 and array.shape[1] > 1,
)
