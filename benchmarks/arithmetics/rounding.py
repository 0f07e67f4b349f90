"""Arithmetics of devices, by what becomes of a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = ["ARITHMETICS", "Arithmetic", "on_grid"]

Array = npt.NDArray[Any]
Rounding = Callable[[Array], Array]

_SMALLEST = np.float32(2.0**-126)  # that isn't subnormal
_TF32_DROPPED = 13  # of 23 bits


def _same(array: Array) -> Array:
    return array


def _as(dtype: Any) -> Rounding:
    def rounded(array: Array) -> Array:
        with np.errstate(over="ignore"):
            return array.astype(dtype).astype(np.float32)

    return rounded


def _flushed(array: Array) -> Array:
    return np.where(np.abs(array) < _SMALLEST, np.float32(0) * array, array)


def _tf32(array: Array) -> Array:
    """To 10 bits behind the point, ties to even; what isn't finite stays."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    half = np.uint32((1 << (_TF32_DROPPED - 1)) - 1) + ((bits >> _TF32_DROPPED) & 1)
    kept = ((bits + half) >> _TF32_DROPPED) << _TF32_DROPPED
    return np.where(np.isfinite(array), kept.astype(np.uint32).view(np.float32), array)


def on_grid(array: Array, axis: int | None = None) -> Array:
    """Rounded to 8 bits: between the least and the largest number; symmetric for each index of an axis, if given."""
    if not array.size:
        return array
    if axis is not None:
        others = tuple(place for place in range(array.ndim) if place != axis % array.ndim)
        step = np.abs(array).max(axis=others, keepdims=True) / 127
        step = np.where(step > 0, step, 1)
        return (np.clip(np.rint(array / step), -127, 127) * step).astype(np.float32)
    low, high = min(float(array.min()), 0.0), max(float(array.max()), 0.0)
    if low == high or not np.isfinite(high - low):
        return array
    step = (high - low) / 255
    zero = np.rint(-low / step)
    return ((np.clip(np.rint(array / step) + zero, 0, 255) - zero) * step).astype(np.float32)


@dataclass(frozen=True)
class Arithmetic:
    """How a device computes.

    Attributes:
        name: As it should be recognised.
        stored: What becomes of every real number that's kept: constants, inputs, results.
        operands: What becomes of numbers that are multiplied in sums of products, besides.
        accumulated: Whether sums of products are rounded at each step, as `stored` does.
        grid: Whether all are on grids of 8 bits (`on_grid`) in place of that.
        int32: Whether whole numbers have 32 bits.
    """

    name: str
    stored: Rounding = _same
    operands: Rounding = _same
    accumulated: bool = False
    grid: bool = False
    int32: bool = False


ARITHMETICS = {
    item.name: item
    for item in (
        Arithmetic("float32"),
        Arithmetic("flushed", stored=_flushed),
        Arithmetic("int32", int32=True),
        Arithmetic("tf32", operands=_tf32),
        Arithmetic("float16", stored=_as(np.float16)),
        Arithmetic("bfloat16", stored=_as(ml_dtypes.bfloat16)),
        Arithmetic("float16-accumulated", stored=_as(np.float16), accumulated=True),
        Arithmetic("bfloat16-accumulated", stored=_as(ml_dtypes.bfloat16), accumulated=True),
        Arithmetic("int8", grid=True),
    )
}
