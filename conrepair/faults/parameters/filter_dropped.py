"""One output channel of a convolution has lost its weights."""

from __future__ import annotations

from conrepair.faults.edits import Array
from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _without(array: Array, channel: int) -> Array:
    result = array.copy()
    result[channel] = 0
    return result


FAULT = Fault(
    name="filter-dropped",
    kind=Kind.PARAMETERS,
    provenance="optimum#1333",
    repair="the channel's weights",
    places=weights(lambda array: array.ndim == 4 and len(array) > 1),
    change=changed_tensor(
        1,
        lambda array, generator: _without(array, int(generator.integers(len(array)))),
        "the weights of {name} lack one channel",
    ),
)
