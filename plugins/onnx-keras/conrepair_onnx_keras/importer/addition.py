"""Addition that broadcasts as numpy does.

With TensorFlow, `keras.ops.add` takes a second operand with a single long axis for a bias, wherever that axis lies,
and adds it along the first operand's last axis (or, if only that fits, its axis 1). For x of shape [3, 4, 4] and y of
shape [1, 4, 1] the answer is wrong without any message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras import ops


def add(x: Any, y: Any) -> Any:
    """The sum of two Keras tensors, arrays or numbers."""
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
