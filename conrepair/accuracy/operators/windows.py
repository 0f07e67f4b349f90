"""Pools, and images of other sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conrepair.accuracy.operators.case import Case
from conrepair.operators.record import Array

__all__ = ["WINDOWS"]

_SIDES = (3, 8, 17, 33, 65)


def _doubled(x: Array) -> Array:
    """Linear between pixels whose middles stand at half of each."""
    for axis in (2, 3):
        wide = np.pad(x, [(1, 1) if place == axis else (0, 0) for place in range(x.ndim)], "edge")
        before, after = (np.take(wide, range(first, first + x.shape[axis]), axis) for first in (0, 2))
        both = np.stack([0.25 * before + 0.75 * x, 0.75 * x + 0.25 * after], axis + 1)
        x = both.reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])
    return x


_STEPS = "kernel_shape=[3, 3], strides=[2, 2]"
_DOUBLED = 'mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"'
_BODIES = {
    **{name: f"{name}<{_STEPS}>(x)" for name in ("AveragePool", "MaxPool", "LpPool")},
    **{name: f"{name}(x)" for name in ("GlobalAveragePool", "GlobalMaxPool")},
    "Resize (linear)": 'Resize<mode="linear">(x, , twice)',
    "Resize (nearest)": f"Resize<{_DOUBLED}>(x, , twice)",
}
_TRUTHS: dict[str, Callable[[Array], Array]] = {
    "Resize (linear)": _doubled,
    "Resize (nearest)": lambda x: x.repeat(2, 2).repeat(2, 3),
}
"""Of which ONNX's reference takes minutes."""

WINDOWS: tuple[Case, ...] = tuple(
    Case(
        *(operator, "windows", f"y = {body}", {"x": f"images 4 {side}"}),
        {"twice": np.array([1, 1, 2, 2], np.float32)} if "Resize" in operator else {},
        side,
        terms=max(9, side**2),
        sums="Average" in operator or "linear" in operator,
        truth=_TRUTHS.get(operator),
    )
    for side in _SIDES
    for operator, body in _BODIES.items()
)
