"""Arithmetic with what may be known: arrays as long as it can be, and tensors of the model where it must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.values import Size, known

if TYPE_CHECKING:
    from conrepair_onnx_keras.importer.node import ImportedNode


def add(x: Any, y: Any) -> Any:
    """The sum of two Keras tensors, arrays or numbers, broadcast as numpy does.

    With TensorFlow, `keras.ops.add` takes a second operand with a single long axis for a bias, wherever that axis
    lies, and adds it along the first operand's last axis (or, if only that fits, its axis 1). For x of shape
    [3, 4, 4] and y of shape [1, 4, 1] the answer is wrong without any message.
    """
    one, two = getattr(x, "shape", ()), getattr(y, "shape", ())
    if not _mistaken(one, two):
        return ops.add(x, y)
    if not _mistaken(two, one):
        return ops.add(y, x)
    return ops.subtract(x, ops.subtract(ops.zeros_like(y), y))


def _mistaken(shape: Sequence[int | None], other: Sequence[int | None]) -> bool:
    """Whether Keras might add the other operand along a wrong axis; sizes that aren't known may be anything."""
    rank = len(shape)
    if rank < 2:
        return False
    if 0 in other:  # Keras counts an axis without cells among those of length 1
        return True
    for axis, size in enumerate(other):
        if size == 1 or any(length not in {1, None} for place, length in enumerate(other) if place != axis):
            continue
        mine, longer = rank - len(other) + axis, len(other) > rank  # `mine`: the axis that it belongs to
        if (mine != rank - 1 or longer) and _may_match(shape[-1], size):
            return True
        last = size is not None and shape[-1] == size
        if (mine != 1 or longer) and not last and _may_match(shape[1], size):
            return True
    return False


def _may_match(one: int | None, two: int | None) -> bool:
    return one != 1 and two != 1 and (one is None or two is None or one == two)


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
