"""One output channel of a convolution has lost its weights."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import Array, numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _without(array: Array, channel: int) -> Array:
    result = array.copy()
    result[channel] = 0
    return result


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 1)
    set_constant(node, 1, _without(array, int(generator.integers(len(array)))))
    return Change((node,), f"the weights of {node.name} lack one channel")


FAULT = Fault(
    name="filter-dropped",
    kind=Kind.PARAMETERS,
    provenance="optimum#1333",
    repair="the channel's weights",
    places=weights(lambda array: array.ndim == 4 and len(array) > 1),
    change=_change,
)
