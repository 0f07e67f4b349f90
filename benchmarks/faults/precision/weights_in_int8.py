"""A layer's weights went through eight bits, one scale for each output channel."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import weights_fault
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array

__all__ = ["FAULT"]

_LEVELS = 127


def _rounded(array: Array) -> Array:
    axes = tuple(range(1, array.ndim))
    largest = np.abs(array).max(axes, keepdims=True)
    step = np.where(largest == 0, 1, largest) / _LEVELS
    return (np.round(array / step) * step).astype(array.dtype)


FAULT = weights_fault(
    "weights-in-int8",
    provenance="openvino#28032, tensorflow#38062",
    repair="float32 for the layer",
    kind=Kind.PRECISION,
    compute=lambda array, _: _rounded(array),
    words="the weights of {name} are rounded to eight bits for each slice of the first axis",
    real=True,
)
