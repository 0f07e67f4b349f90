"""Operators that sum, in float64, with the magnitude that their rounding errors are relative to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "Array",
    "Exact",
    "convolved",
    "convolved_back",
    "windows",
]

Array = npt.NDArray[Any]
# The values, and the magnitude that a rounding error on the way is relative to: what the terms have, not their sum.
Exact = tuple[Array, Array]


def windows(x: Array, size: int, step: int = 1) -> Array:
    """All square windows of images (batch, channels, height, width), as two axes more."""
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::step, ::step]


def convolved(x: Array, weights: Array, groups: int = 1) -> Exact:
    """A convolution without padding, and that of all magnitudes."""

    def plain(x: Array, weights: Array) -> Array:
        parts = np.split(windows(x, weights.shape[-1]), groups, 1)
        pairs = zip(parts, np.split(weights, groups), strict=True)
        return np.concatenate([np.tensordot(one, two, ((1, 4, 5), (1, 2, 3))) for one, two in pairs], -1)

    both: list[Array] = [plain(x, weights), plain(np.abs(x), np.abs(weights))]
    value, scale = (np.moveaxis(array, -1, 1) for array in both)
    return value, scale


def convolved_back(x: Array, weights: Array, step: int = 2) -> Exact:
    """A transposed convolution: images with zeros between, under weights turned round."""
    border = weights.shape[-1] - 1
    apart = np.zeros((*x.shape[:2], *(step * (side - 1) + 1 + 2 * border for side in x.shape[2:])))
    apart[:, :, border : apart.shape[2] - border : step, border : apart.shape[3] - border : step] = x
    return convolved(apart, np.swapaxes(weights, 0, 1)[:, :, ::-1, ::-1])
