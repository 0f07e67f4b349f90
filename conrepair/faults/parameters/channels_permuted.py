"""Output channels of a layer come in another order than the next layer takes them."""

from __future__ import annotations

from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


FAULT = Fault(
    name="channels-permuted",
    kind=Kind.PARAMETERS,
    provenance="MMdnn#595, mgeconvert#78",
    repair="the order of the channels",
    places=weights(lambda array: array.ndim == 4 and len(array) > 1),
    change=changed_tensor(
        1,
        lambda array, generator: array[generator.permutation(len(array))],
        "the weights of {name} have their output channels permuted",
    ),
)
