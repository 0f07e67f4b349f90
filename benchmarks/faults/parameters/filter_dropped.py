"""One output channel of a convolution has lost its weights."""

from __future__ import annotations

from benchmarks.faults.families import weights_fault
from conrepair.ground.graph.layer_graph import Array

__all__ = ["FAULT"]


def _without(array: Array, channel: int) -> Array:
    result = array.copy()
    result[channel] = 0
    return result


FAULT = weights_fault(
    "filter-dropped",
    provenance="optimum#1333",
    repair="the channel's weights",
    compute=lambda array, generator: _without(array, int(generator.integers(len(array)))),
    words="the weights of {name} lack one channel",
    condition=lambda array: array.ndim == 4 and len(array) > 1,
)
