"""Masks that differ: how many of their places, and whether they're one diagonal off."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.layer_graph import Array


def hide_alike(source: Array, target: Array) -> bool:
    """Whether numbers differ only where both are so low that no softmax tells them from one another."""
    if source.shape != target.shape or {source.dtype.kind, target.dtype.kind} != {"f"}:
        return False
    hidden = source <= naming.MASKING
    return np.array_equal(hidden, target <= naming.MASKING) and np.array_equal(source[~hidden], target[~hidden])


def mask_words(source: Array, target: Array) -> str | None:
    """Say how two masks differ, after "is"; None where one of them is none, or both say the same.

    Args:
        source: Zeros and ones (or truth values), or zeros and numbers that hide what they're added to.
        target: The same, of the same shape.
    """
    if source.shape != target.shape or source.size < naming.MASKED:
        return None
    ours, theirs = _chosen(source), _chosen(target)
    if ours is None or theirs is None or ours.all() or not ours.any():
        return None
    other = int((ours != theirs).sum())
    if not other:
        return None
    if other == ours.size:
        return "a mask, the opposite of the source's"
    words = f"a mask that differs in {other} of {ours.size} places"
    if theirs.all() or not theirs.any():
        return f"{words}: it's the same everywhere"
    shift = _diagonals(ours, theirs)
    return f"{words}: shifted by {_counted(shift)}" if shift else words


def _chosen(array: Array) -> npt.NDArray[np.bool_] | None:
    """Where a mask is one, or hides; None for what is no mask."""
    if array.dtype == np.bool_:
        return np.asarray(array)
    if array.dtype.kind not in "iuf":
        return None
    low = np.asarray(array <= naming.MASKING)
    if (low | (array == 0)).all() and (low.any() or not array.any()):
        return low
    one = np.asarray(array == 1)
    return one if (one | (array == 0)).all() else None


def _diagonals(ours: npt.NDArray[np.bool_], theirs: npt.NDArray[np.bool_]) -> int:
    """By how many diagonals of the last two axes one is the other, shifted; 0 where it isn't."""
    if ours.ndim < 2:
        return 0
    columns = ours.shape[-1]
    for shift in (1, -1, 2, -2):
        first = ours[..., max(-shift, 0) : columns - max(shift, 0)]
        second = theirs[..., max(shift, 0) : columns - max(-shift, 0)]
        if first.shape[-1] > 1 and np.array_equal(first, second):
            return shift
    return 0


def _counted(shift: int) -> str:
    return f"{abs(shift)} diagonal{'s' if abs(shift) > 1 else ''}"
