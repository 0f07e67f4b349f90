"""The scale and zero point that a range of real numbers takes in an integer type."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from conrepair.editors.operation import NotEditableError
from conrepair.graph.layer_graph import Array

__all__ = ["affine_grid", "symmetric_scales"]


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


def symmetric_scales(array: Array, axis: int | None, most: int, kept: Array) -> npt.NDArray[np.float32]:
    """Scales of a constant whose zero is stored as 0.

    Args:
        array: Real numbers.
        axis: Of the channels that have a scale each; None for one scale of all.
        most: Largest integer of the type.
        kept: Scales so far; they stay where all numbers are zero.
    """
    axes = tuple(place for place in range(array.ndim) if axis is None or place != axis % array.ndim)
    largest = np.abs(array).max(axes) if array.size else np.zeros(())
    needed = np.asarray(largest / most, np.float32).reshape(-1)
    kept = np.broadcast_to(np.asarray(kept, np.float32).reshape(-1), needed.shape)
    return np.where(needed > 0, needed, kept).astype(np.float32)
