"""A layer's weights went through float16."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import weights_fault
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


FAULT = weights_fault(
    "weights-in-float16",
    provenance="TensorRT#2564, coremltools#2110",
    repair="float32 for the layer",
    kind=Kind.PRECISION,
    compute=lambda array, _: array.astype(np.float16).astype(array.dtype),
    words="the weights of {name} went through float16",
    real=True,
)
