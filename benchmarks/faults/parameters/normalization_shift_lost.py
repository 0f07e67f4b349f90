"""The offset of a normalization is lost."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import normalization_fault

__all__ = ["FAULT"]


FAULT = normalization_fault(
    "normalization-shift-lost",
    provenance="onnxmltools#323",
    repair="the tensor",
    operators=("BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization"),
    index=2,
    compute=lambda array, _: np.zeros_like(array),
    words="{name}: its offset is zero",
)
