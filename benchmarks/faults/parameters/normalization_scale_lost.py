"""The factor of a normalization is lost."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import normalization_fault

__all__ = ["FAULT"]


FAULT = normalization_fault(
    "normalization-scale-lost",
    provenance="onnxmltools#323",
    repair="the tensor",
    operators=("BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization"),
    index=1,
    compute=lambda array, _: np.ones_like(array),
    words="{name}: its scale is one",
)
