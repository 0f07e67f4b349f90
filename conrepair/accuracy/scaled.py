"""Operators that sum, in float64, with the magnitude that their rounding errors are relative to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.operators import rows

__all__ = [
    "Array",
    "Exact",
    "convolved",
    "convolved_back",
    "log_softmax",
    "log_sum_exp",
    "normalized",
    "softmax",
    "summed",
    "windows",
]

Array = npt.NDArray[Any]
# The values, and the magnitude that a rounding error on the way is relative to: what the terms have, not their sum.
Exact = tuple[Array, Array]


def summed(terms: Array, axis: Any = -1) -> Exact:
    """A sum, and that of its terms' magnitudes."""
    return terms.sum(axis, keepdims=True), np.abs(terms).sum(axis, keepdims=True)


def log_sum_exp(x: Array) -> Exact:
    """Of each row; the largest is taken out and put back."""
    value = rows.log_sum_exp(x, (-1,))
    return value, np.abs(value) + np.abs(x).max(-1, keepdims=True)


def softmax(x: Array) -> Exact:
    """Of each row; the rounding of x - max is multiplied by its size."""
    value = rows.softmax(x)
    return value, value * (1 + np.abs(x - x.max(-1, keepdims=True)))


def log_softmax(x: Array) -> Exact:
    """Of each row."""
    return rows.log_softmax(x), 1 + np.abs(x - x.max(-1, keepdims=True))


def normalized(x: Array, axes: Any = -1, epsilon: float = 1e-5) -> Exact:
    """Mean 0, spread 1; that the mean is rounded shows in units of the spread."""
    spread = np.sqrt(x.var(axes, keepdims=True) + epsilon)
    value = (x - x.mean(axes, keepdims=True)) / spread
    return value, np.abs(value) + np.abs(x).max(axes, keepdims=True) / spread


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
