"""Numbers with the magnitude that their rounding errors are relative to; and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Exact", "convolved", "convolved_back"]

Array = npt.NDArray[Any]
# The values, and the magnitude that a rounding error on the way is relative to: what the terms have, not their sum.
Exact = tuple[Array, Array]


def convolved(x: Array, weights: Array, groups: int = 1) -> Array:
    """A convolution of images (batch, channels, height, width) without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, weights.shape[2:], (2, 3))
    pairs = zip(np.split(windows, groups, 1), np.split(weights, groups), strict=True)
    products = [np.tensordot(one, two, ((1, 4, 5), (1, 2, 3))) for one, two in pairs]
    return np.moveaxis(np.concatenate(products, -1), -1, 1)


def convolved_back(x: Array, weights: Array, step: int = 2) -> Array:
    """A transposed convolution: images with zeros between, under weights turned round."""
    border = weights.shape[-1] - 1
    apart = np.zeros((*x.shape[:2], *(step * (side - 1) + 1 + 2 * border for side in x.shape[2:])))
    apart[:, :, border : apart.shape[2] - border : step, border : apart.shape[3] - border : step] = x
    return convolved(apart, np.swapaxes(weights, 0, 1)[:, :, ::-1, ::-1])
