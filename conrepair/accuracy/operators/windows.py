"""Pools, and images of other sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conrepair.accuracy import scaled
from conrepair.accuracy.operators.case import Case
from conrepair.accuracy.scaled import Array, Exact

__all__ = ["WINDOWS"]

_SIDES = (3, 8, 17, 33, 65)


def _mean(x: Array) -> Exact:
    total, scale = scaled.summed(scaled.windows(x, 3, 2), (-2, -1))
    return (total / 9)[..., 0, 0], (scale / 9)[..., 0, 0]


def _global(x: Array) -> Exact:
    value, scale = scaled.summed(x, (-2, -1))
    return value / x[0, 0].size, scale / x[0, 0].size


def _doubled(x: Array) -> Exact:
    """Linear between pixels whose middles stand at half of each."""

    def along(x: Array, axis: int) -> Array:
        first, last = np.take(x, [0], axis), np.take(x, [-1], axis)
        before = np.concatenate([first, np.take(x, range(x.shape[axis] - 1), axis)], axis)
        after = np.concatenate([np.take(x, range(1, x.shape[axis]), axis), last], axis)
        both = np.stack([0.25 * before + 0.75 * x, 0.75 * x + 0.25 * after], axis + 1)
        return both.reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])

    return along(along(x, 2), 3), along(along(np.abs(x), 2), 3)


_BODIES: dict[str, tuple[str, Callable[[Array], Any]]] = {
    "AveragePool": ("AveragePool<kernel_shape=[3, 3], strides=[2, 2]>(x)", _mean),
    "MaxPool": (
        "MaxPool<kernel_shape=[3, 3], strides=[2, 2]>(x)",
        lambda x: scaled.windows(x, 3, 2).max((-2, -1)),
    ),
    "GlobalAveragePool": ("GlobalAveragePool(x)", _global),
    "GlobalMaxPool": ("GlobalMaxPool(x)", lambda x: x.max((2, 3), keepdims=True)),
    "LpPool": (
        "LpPool<kernel_shape=[3, 3], strides=[2, 2]>(x)",
        lambda x: np.sqrt((scaled.windows(x, 3, 2) ** 2).sum((-2, -1))),
    ),
    "Resize (linear)": ('Resize<mode="linear">(x, , twice)', _doubled),
    "Resize (nearest)": (
        'Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , twice)',
        lambda x: x.repeat(2, 2).repeat(2, 3),
    ),
}

WINDOWS: tuple[Case, ...] = tuple(
    Case(
        operator,
        "windows",
        f"y = {body}",
        {"x": f"images 4 {side}"},
        truth,
        {"twice": np.array([1, 1, 2, 2], np.float32)} if "Resize" in operator else {},
        side,
        terms=max(9, side**2),
    )
    for side in _SIDES
    for operator, (body, truth) in _BODIES.items()
)
