"""Weights through narrower numbers, stored as float32 again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.common.plain_graph import Array

__all__ = ["FORMATS"]

_GROUP = 32

Rounding = Callable[[Array, int], Array]


def _bfloat16(array: Array, _: int) -> Array:
    """Round to nearest, ties to even."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


def _float16(array: Array, _: int) -> Array:
    return array.astype(np.float16).astype(np.float32)


def _symmetric(array: Array, largest: Array, levels: int) -> Array:
    scale = np.where(largest == 0, 1, largest) / levels
    return (np.clip(np.round(array / scale), -levels, levels) * scale).astype(np.float32)


def _int8_channels(array: Array, axis: int) -> Array:
    others = tuple(place for place in range(array.ndim) if place != axis % array.ndim)
    return _symmetric(array, np.abs(array).max(others, keepdims=True), 127)


def _int8(array: Array, _: int) -> Array:
    return _symmetric(array, np.abs(array).max(), 127)


def _uint8(array: Array, _: int) -> Array:
    low, high = min(float(array.min()), 0.0), max(float(array.max()), 0.0)
    scale = (high - low) / 255 or 1.0
    zero = round(-low / scale)
    return ((np.clip(np.round(array / scale) + zero, 0, 255) - zero) * scale).astype(np.float32)


def _int4_groups(array: Array, axis: int) -> Array:
    """In groups of neighbours that make one output, the last one smaller."""
    rows = np.moveaxis(array, axis, 0)
    flat = rows.reshape(len(rows), -1)
    parts = [flat[:, start : start + _GROUP] for start in range(0, flat.shape[1], _GROUP)]
    rounded = [_symmetric(part, np.abs(part).max(1, keepdims=True), 7) for part in parts]
    return np.moveaxis(np.concatenate(rounded, 1).reshape(rows.shape), 0, axis)


FORMATS: dict[str, Rounding] = {
    "weights-in-bfloat16": _bfloat16,
    "weights-in-float16": _float16,
    "weights-in-int8-by-channel": _int8_channels,
    "weights-in-int8": _int8,
    "weights-in-uint8": _uint8,
    "weights-in-int4-groups": _int4_groups,
}
"""By name; each is given the axis of a layer's outputs."""
