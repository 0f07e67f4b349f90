"""The scale and zero point that a range of real numbers takes in an integer type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt

from conrepair.formats.editing.operation import NotEditableError
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.slices import HALF_STEP

_SYMMETRIC = {"int16"}  # types of activations whose zero kernels want to be stored as 0


def limits_of(dtype: npt.DTypeLike) -> tuple[int, int]:
    """The smallest and the largest integer of a type."""
    limits = ml_dtypes.iinfo(np.dtype(dtype))
    return int(limits.min), int(limits.max)


def grid_of_range(low: float, high: float, dtype: npt.DTypeLike) -> tuple[npt.NDArray[np.float32], int]:
    """Scale and zero point of an activation.

    Args:
        low: Smallest real number.
        high: Largest.
        dtype: Of the integers.

    Raises:
        NotEditableError: see `affine_grid`.
    """
    least, most = limits_of(dtype)
    if np.dtype(dtype).name in _SYMMETRIC:
        high = max(abs(low), abs(high))
        low, least = -high, -most
    return affine_grid(low, high, least, most)


def affine_grid(low: float, high: float, least: int, most: int) -> tuple[npt.NDArray[np.float32], int]:
    """Scale and zero point so that a range, and zero itself, can be stored.

    Args:
        low: Smallest real number.
        high: Largest.
        least: Smallest integer of the type.
        most: Largest.

    Raises:
        NotEditableError: if there is nothing between the bounds.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    scale = np.array((high - low) / (most - least), np.float32)
    if not np.isfinite(scale) or scale <= 0:
        raise NotEditableError(f"no scale stores numbers from {low:g} to {high:g}")
    return scale, int(np.clip(np.rint(least - low / float(scale)), least, most))


def symmetric_scales(
    array: Array, axis: int | tuple[int, ...] | None, most: int, kept: Array, held: Array | None = None
) -> npt.NDArray[np.float32]:
    """Scales of a constant whose zero is stored as 0.

    Quantizers divide the largest number by the largest integer, or the range by all of the type's steps. Where the
    integers so far are those of the second, that's the scale that they had.

    Args:
        array: Real numbers.
        axis: Of the channels that have a scale each, or several; None for one scale of all.
        most: Largest integer of the type.
        kept: Scales so far; they stay where all numbers are zero.
        held: Integers so far.
    """
    along = () if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(place for place in range(array.ndim) if place not in {item % array.ndim for item in along})
    largest = np.abs(array).max(axes) if array.size else np.zeros(())
    needed = np.asarray(largest / most, np.float32).reshape(-1)
    if held is not None and array.size:
        spread = [size if place not in axes else 1 for place, size in enumerate(array.shape)]
        all_steps = np.asarray(largest / (most + 0.5), np.float32).reshape(-1)
        off = [
            np.abs(array / np.where(item > 0, item, 1).reshape(spread) - held).max(axes)
            for item in (needed, all_steps)
        ]
        theirs = (off[1] < off[0]) & (off[1] <= HALF_STEP)
        needed = np.where(theirs.reshape(-1), all_steps, needed)
    kept = np.broadcast_to(np.asarray(kept, np.float32).reshape(-1), needed.shape)
    return np.where(needed > 0, needed, kept).astype(np.float32)
