"""A layer's bias is lost."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import bias_fault

__all__ = ["FAULT"]


FAULT = bias_fault(
    "bias-dropped",
    provenance="pytorch#95867, keras-onnx#89",
    repair="the bias",
    compute=lambda array, _: np.zeros_like(array),
    words="the bias of {name} is zero",
)
