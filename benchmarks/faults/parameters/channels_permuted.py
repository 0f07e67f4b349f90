"""Output channels of a layer come in another order than the next layer takes them."""

from __future__ import annotations

from benchmarks.faults.families import weights_fault

__all__ = ["FAULT"]


FAULT = weights_fault(
    "channels-permuted",
    provenance="MMdnn#595, mgeconvert#78",
    repair="the order of the channels",
    compute=lambda array, generator: array[generator.permutation(len(array))],
    words="the weights of {name} have their output channels permuted",
    condition=lambda array: array.ndim == 4 and len(array) > 1,
)
