"""How Resize draws each cell of an axis from the cells of its input: pure arithmetic, with numpy.

Coordinates are computed in float32, as ONNX Runtime does, so that ties fall on the same side. With align_corners the
output's size counts in whole cells, as in ONNX Runtime and PyTorch; ONNX's reference implementation takes the
fraction that the scale would give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from conrepair.ground.graph.layer_graph import Array

_ONE, _HALF = np.float32(1), np.float32(0.5)


@dataclass(frozen=True)
class Axis:
    """One axis that is resized.

    Attributes:
        size: Cells of the input.
        length: Cells of the output.
        scale: Output cells for each input cell, as the standard computes it.
        region: Where the region of interest begins and ends, as shares of the axis.
    """

    size: int
    length: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class WeightKernel:
    """A function that says what a cell weighs at a distance.

    Attributes:
        weight: Of distances (float64).
        radius: From where on everything weighs nothing.
    """

    weight: Callable[[Array], Array]
    radius: int


linear = WeightKernel(lambda distance: np.clip(1 - np.abs(distance), 0, 1), 1)


def near(x: Any, a: float) -> Any:
    """Keys's kernel at distances up to 1, of arrays or tensors."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


def far(x: Any, a: float) -> Any:
    """Keys's kernel at distances from 1 to 2."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def cubic(a: float) -> WeightKernel:
    """Keys's cubic convolution."""

    def weight(distance: Array) -> Array:
        x = np.abs(distance)
        return np.where(x <= 1, near(x, a), np.where(x < 2, far(x, a), 0))

    return WeightKernel(weight, 2)


def coordinates(axis: Axis, mode: str) -> Array:
    """Where in the input (float32, in cells) each output cell looks; `mode` is the standard's name."""
    cells = np.arange(axis.length, dtype=np.float32)
    scale, last = np.float32(axis.scale), np.float32(axis.size - 1)
    if mode == "asymmetric":
        return cells / scale
    if mode == "align_corners":
        return cells * last / np.float32(axis.length - 1) if axis.length > 1 else cells
    if mode == "tf_half_pixel_for_nn":
        return (cells + _HALF) / scale
    if mode == "tf_crop_and_resize":
        start, end = map(np.float32, axis.region)
        if axis.length > 1:
            return start * last + cells * (end - start) * last / np.float32(axis.length - 1)
        return cells + _HALF * (start + end) * last
    if mode == "pytorch_half_pixel" and axis.length == 1:
        return cells
    if mode == "half_pixel_symmetric":
        adjustment = np.float32(axis.length) / (scale * np.float32(axis.size))
        offset = np.float32(axis.size) / 2 * (_ONE - adjustment)
        # The sum alone is taken in float64 by ONNX Runtime.
        return (offset.astype(np.float64) + (cells.astype(np.float64) + 0.5) / scale - 0.5).astype(np.float32)
    return (cells + _HALF) / scale - _HALF


def nearest(where: Array, mode: str, axis: Axis) -> Array:
    """The input cell that each output cell copies; "simple" is what was done before there were modes."""
    if mode == "simple":
        mode = "ceil" if axis.scale < 1 else "floor"
    below = np.floor(where)
    rest = where - below
    up = {"floor": rest < 0, "ceil": rest > 0, "round_prefer_floor": rest > _HALF, "round_prefer_ceil": rest >= _HALF}
    return np.clip((below + up[mode]).astype(np.int32), 0, axis.size - 1)


def weights(where: Array, axis: Axis, kernel: WeightKernel, *, antialias: bool, exclude_outside: bool) -> Array:
    """What each input cell contributes to each output cell: float64, [length, size].

    Cells that would lie outside the input are those at its border, or don't count (`exclude_outside`).
    """
    narrow = min(axis.scale, 1.0) if antialias else 1.0
    reach = math.ceil(kernel.radius / narrow)
    where = where.astype(np.float64)
    cells = np.floor(where).astype(np.int64)[:, None] + np.arange(1 - reach, reach + 1)
    taps = kernel.weight((cells - where[:, None]) * narrow)
    if exclude_outside:
        taps = np.where((cells >= 0) & (cells < axis.size), taps, 0)
    total = taps.sum(axis=1, keepdims=True)
    taps = np.divide(taps, total, out=np.zeros_like(taps), where=total != 0)
    result = np.zeros((axis.length, axis.size))
    rows = np.broadcast_to(np.arange(axis.length)[:, None], taps.shape)
    np.add.at(result, (rows, np.clip(cells, 0, axis.size - 1)), taps)
    return result
