"""The weights of a layer are lost."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import weights_fault

__all__ = ["FAULT"]


FAULT = weights_fault(
    "weights-zeroed",
    provenance="pytorch#95867, onnx#3992",
    repair="the weights",
    compute=lambda array, _: np.zeros_like(array),
    words="the weights of {name} are zeros",
)
