"""Pools, and images of other sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conrepair.accuracy.operators.case import Case
from conrepair.accuracy.scaled import Array

__all__ = ["WINDOWS"]

_SIDES = (3, 8, 17, 33, 65)


def _doubled(x: Array) -> Array:
    """Linear between pixels whose middles stand at half of each."""

    def along(x: Array, axis: int) -> Array:
        first, last = np.take(x, [0], axis), np.take(x, [-1], axis)
        before = np.concatenate([first, np.take(x, range(x.shape[axis] - 1), axis)], axis)
        after = np.concatenate([np.take(x, range(1, x.shape[axis]), axis), last], axis)
        both = np.stack([0.25 * before + 0.75 * x, 0.75 * x + 0.25 * after], axis + 1)
        return both.reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])

    return along(along(x, 2), 3)


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
