"""Read images at computed places between their cells."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from keras import ops

from conrepair.importer.indexing import flat_positions
from conrepair.importer.interpolation import far, near

__all__ = ["Taps", "cubic_taps", "linear_taps", "read", "reflected"]

Taps = list[tuple[Any, Any]]
"""Along one axis: cells (whole numbers, any float type), and what each weighs (None: 1)."""

_A = -0.75


def linear_taps(where: Any) -> Taps:
    """The two cells around a place."""
    below = ops.floor(where)
    rest = ops.subtract(where, below)
    return [(below, ops.subtract(1.0, rest)), (ops.add(below, 1.0), rest)]


def cubic_taps(where: Any) -> Taps:
    """The four cells around a place, weighted by Keys's kernel with a = -0.75."""
    below = ops.floor(where)
    rest = ops.subtract(where, below)
    distances = [ops.add(rest, 1.0), rest, ops.subtract(1.0, rest), ops.subtract(2.0, rest)]
    weights = [kernel(distance, _A) for kernel, distance in zip((far, near, near, far), distances, strict=True)]
    return [(ops.add(below, float(step)), weight) for step, weight in zip((-1, 0, 1, 2), weights, strict=True)]


def reflected(where: Any, low: float, high: float) -> Any:
    """Places mirrored at both borders until they lie between them."""
    width = high - low
    if width == 0:
        return ops.full_like(where, low)
    folded = ops.mod(ops.absolute(ops.subtract(where, low)), 2 * width)
    return ops.add(ops.subtract(width, ops.absolute(ops.subtract(folded, width))), low)


def read(rows: Any, sample: Any, taps: Sequence[Taps], sizes: Sequence[int]) -> list[Any]:
    """For each combination of taps, what the image has there times the weight.

    Args:
        rows: [samples * cells, channels]: the images, flattened.
        sample: Which image is read (int64), broadcast with the taps.
        taps: For each spatial axis. Cells outside the image are clipped; what they weigh is the caller's matter.
        sizes: Of the spatial axes.

    Returns:
        Tensors of the taps' shape with an axis of channels behind.
    """
    values = []
    for combination in itertools.product(*taps):
        cells = [
            cell.astype(np.int64) if isinstance(cell, np.ndarray) else _clipped(cell, size)
            for (cell, _), size in zip(combination, sizes, strict=True)
        ]
        found = ops.take(rows, flat_positions([sample, *cells], sizes), axis=0)
        weights = [weight for _, weight in combination if weight is not None]
        if weights:
            weight = ops.cast(ops.expand_dims(reduce(ops.multiply, weights), -1), found.dtype)
            found = ops.multiply(found, weight)
        values.append(found)
    return values


def _clipped(cell: Any, size: int) -> Any:
    return ops.cast(ops.clip(cell, 0.0, float(size - 1)), "int64")
