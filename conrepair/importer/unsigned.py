"""uint64, which Keras computes in uint32 without a word: computed in int64, on the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras import ops

from conrepair.importer.node import ImportedNode

__all__ = ["of_bits", "of_order"]

_Function = Callable[..., Any]
_LOWEST = -(2**63)


def of_bits(node: ImportedNode, function: _Function) -> _Function:
    """A function of bits, or of sums and products, which wrap around alike; what it gives is of the node's type.

    Args:
        node: Whose last input says the type.
        function: Of tensors of that type.
    """
    if not _concerned(node):
        return function
    return lambda *tensors: ops.view(function(*map(_signed, tensors)), "uint64")


def of_order(node: ImportedNode, function: _Function, *, compares: bool) -> _Function:
    """A function that asks which number is larger; see `of_bits`.

    Args:
        node: The node.
        function: Of its tensors.
        compares: Whether it gives truths, and not one of the numbers.
    """
    if not _concerned(node):
        return function

    def ordered(*tensors: Any) -> Any:
        y = function(*(ops.add(_signed(x), _LOWEST) for x in tensors))
        return y if compares else ops.view(ops.add(y, _LOWEST), "uint64")

    return ordered


def _concerned(node: ImportedNode) -> bool:
    return node.dtype(len(node.inputs) - 1) == "uint64"


def _signed(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.view("int64") if x.dtype == "uint64" else x
    return ops.view(x, "int64") if str(x.dtype) == "uint64" else x
