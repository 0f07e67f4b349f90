"""The mean that BatchNorm subtracts is lost."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import normalization_fault

__all__ = ["FAULT"]


FAULT = normalization_fault(
    "moving-mean-lost",
    provenance="tensorflow-onnx#1726",
    repair="the tensor",
    operators=("BatchNormalization",),
    index=3,
    compute=lambda array, _: np.zeros_like(array),
    words="{name}: its mean is zero",
)
