"""Normalizations and the softmax family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conrepair.ground.operators.record import Array
from conrepair_lab.accuracy.operators.case import FEW, Case

_Scale = Callable[[Array, Array], Array]
_CHANNELS = 4
_SIDES = (3, 8, 17, 33)
_SCALE, _SHIFT, _MEAN, _SPREAD = np.arange(1, 17).reshape(4, 4) / 4
_FACTOR, _OFFSET, _CENTRE = (numbers.reshape(-1, 1, 1) for numbers in (_SCALE, _SHIFT, _MEAN))


def _peak(x: Array, axes: Any = -1, epsilon: float = 1e-5) -> Array:
    """The largest magnitude, in units of the spread: that the mean is rounded shows in these."""
    return np.asarray(np.abs(x).max(axes, keepdims=True) / np.sqrt(x.var(axes, keepdims=True) + epsilon))


def _by_channel(y: Array, peak: Array) -> Array:
    return np.asarray(np.abs(y - _OFFSET) + peak * _FACTOR + _OFFSET)


def _grouped(y: Array, x: Array) -> Array:
    return _by_channel(y, _peak(x.reshape(len(x), 2, -1)).repeat(2, 1)[..., None])


def _batch(_: Array, x: Array) -> Array:
    return np.asarray((np.abs(x) + _CENTRE) * _FACTOR / np.sqrt(_SPREAD + 1e-5).reshape(-1, 1, 1) + _OFFSET)


def _low(x: Array) -> Array:
    """The size of x - max, whose rounding softmax multiplies by."""
    return np.asarray(1 + np.abs(x - x.max(-1, keepdims=True)))


_OF_ROWS: dict[str, _Scale | None] = {
    "LayerNormalization<axis=-1>(x, s, b)": lambda y, x: np.abs(y) + _peak(x),
    "RMSNormalization<axis=-1>(x, s)": None,
    "LpNormalization<p=1>(x)": None,
    "LpNormalization(x)": None,
    "MeanVarianceNormalization<axes=[1]>(x)": lambda y, x: np.abs(y) + _peak(x, epsilon=1e-18),
    "Softmax(x)": lambda y, x: y * _low(x),
    "LogSoftmax(x)": lambda _, x: _low(x),
}
_OF_IMAGES: dict[str, _Scale | None] = {
    "InstanceNormalization(x, s, b)": lambda y, x: _by_channel(y, _peak(x, (2, 3))),
    "GroupNormalization<num_groups=2>(x, s, b)": _grouped,
    "BatchNormalization(x, s, b, m, v)": _batch,
    "LRN<size=3>(x)": None,
}
_OPSETS = {"RMSNormalization": 23, "GroupNormalization": 21}
_PER_CHANNEL = {"s": _SCALE, "b": _SHIFT, "m": _MEAN, "v": _SPREAD}


def _case(body: str, scale: _Scale | None, feed: str, numbers: dict[str, Array], size: int, terms: int) -> Case:
    name = body.replace("<", "(").split("(")[0]
    constants = {key: array for key, array in numbers.items() if f" {key}" in body}
    words, opset = f"{name} (1)" if "p=1" in body else name, _OPSETS.get(name, 20)
    return Case(words, "normalizations", f"y = {body}", {"x": feed}, constants, size, opset, terms, scale=scale)


NORMALIZATIONS: tuple[Case, ...] = (
    *(
        _case(body, scale, f"rows {size}", {"s": np.ones(size), "b": np.zeros(size)}, size, size)
        for size in FEW
        for body, scale in _OF_ROWS.items()
    ),
    *(
        _case(body, scale, f"images {_CHANNELS} {side}", _PER_CHANNEL, side, _CHANNELS * side**2)
        for side in _SIDES
        for body, scale in _OF_IMAGES.items()
    ),
)
