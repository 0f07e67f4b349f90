"""Output channels of a layer come in another order than the next layer takes them."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 1)
    set_constant(node, 1, array[generator.permutation(len(array))])
    return Change((node,), f"the weights of {node.name} have their output channels permuted")


FAULT = Fault(
    name="channels-permuted",
    kind=Kind.PARAMETERS,
    provenance="MMdnn#595, mgeconvert#78",
    repair="the order of the channels",
    places=weights(lambda array: array.ndim == 4 and len(array) > 1),
    change=_change,
)
