"""A parameter that is one of several equal portions of another: queries, keys and values from one projection."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from conrepair.graph.layer_graph import Array

__all__ = ["portion_of"]

_MOST = 8  # portions
_NEAR = 0.5  # relative L2, at most
_NEARER = 4.0  # times nearer than any other portion


def portion_of(whole: Array, given: Array) -> npt.NDArray[np.float64] | None:
    """The portion of an array that another one is nearest to.

    Args:
        whole: Any shape.
        given: Of the same shape, but for one axis that's a whole number of times shorter.

    Returns:
        In `given`'s shape; None where there's no such axis, or none of the portions is much nearer than the others.
    """
    if whole.ndim != given.ndim or not given.size or whole.size == given.size:
        return None
    axes = [axis for axis in range(whole.ndim) if whole.shape[axis] != given.shape[axis]]
    if len(axes) != 1 or whole.shape[axes[0]] % given.shape[axes[0]]:
        return None
    count = whole.shape[axes[0]] // given.shape[axes[0]]
    if count > _MOST:
        return None
    portions = np.split(whole.astype(np.float64), count, axis=axes[0])
    gaps = [float(np.linalg.norm(portion - given)) for portion in portions]
    first, second = sorted(gaps)[:2]
    if first > _NEAR * float(np.linalg.norm(given)) or first * _NEARER >= second:
        return None
    return portions[gaps.index(first)]
