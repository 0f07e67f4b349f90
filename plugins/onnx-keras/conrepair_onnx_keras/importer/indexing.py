"""Arithmetic with what may be known: arrays as long as it can be, and tensors of the model where it must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.addition import add
from conrepair_onnx_keras.importer.values import Size, known

if TYPE_CHECKING:
    from conrepair_onnx_keras.importer.node import ImportedNode


def computed(function: str, *operands: Any) -> Any:
    """A function of this name: numpy's if all operands are known, else Keras's; a list or a tuple says sizes."""
    constant = all(isinstance(operand, np.ndarray | np.generic | int | float | list | tuple) for operand in operands)
    if function == "add" and not constant:
        return add(*map(_shaped, operands))
    return getattr(np if constant else ops, function)(*operands)


def cast(x: Any, dtype: str) -> Any:
    """The same in another type."""
    return x.astype(dtype) if isinstance(x, np.ndarray | np.generic) else ops.cast(x, dtype)


def _shaped(operand: Any) -> Any:
    return np.asarray(operand) if isinstance(operand, int | float) else operand


def from_front(node: ImportedNode, indices: Any, size: Size) -> Any:
    """Indices along an axis of that size (int64), counted from its front; negative ones count from its end."""
    if isinstance(indices, np.ndarray) and indices.min(initial=0) >= 0:
        return indices.astype(np.int64)
    indices = cast(indices, "int64")
    end = int(size) if known(size) else node.stored(np.array(size, object))
    return computed("where", computed("less", indices, 0), computed("add", indices, end), indices)


def positions(node: ImportedNode, size: Size, axis: int, rank: int) -> Any:
    """0, 1, 2... along one of `rank` axes (int64): an array, or a tensor where the size is known by name only."""
    shape = [-1 if place == axis else 1 for place in range(rank)]
    if known(size):
        return np.arange(int(size)).reshape(shape)
    return ops.reshape(ops.subtract(ops.cumsum(node.ones([size], "int64"), axis=0), 1), shape)


def flat_positions(coordinates: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Coordinates along several axes as one index (int64) into those axes flattened.

    Args:
        coordinates: For each axis, an array or tensor; they broadcast.
        sizes: Of all axes but the first.
    """
    total = coordinates[0]
    for coordinate, size in zip(coordinates[1:], sizes, strict=True):
        total = computed("add", computed("multiply", total, size), coordinate)
    return total
