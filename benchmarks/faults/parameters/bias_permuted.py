"""A layer's bias is in another order than its channels."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import bias_fault

__all__ = ["FAULT"]


FAULT = bias_fault(
    "bias-permuted",
    provenance="pytorch#166797",
    repair="the bias",
    compute=lambda array, _: np.roll(array, 1, -1),
    words="the bias of {name} is shifted by one channel",
)
