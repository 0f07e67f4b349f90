"""Normalizations and the softmax family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conrepair.accuracy.operators.case import FEW, Case
from conrepair.accuracy.scaled import Array

__all__ = ["NORMALIZATIONS"]

_CHANNELS = 4
_SIDES = (3, 8, 17, 33)
_SCALE, _SHIFT, _MEAN, _SPREAD = np.arange(1, 17).reshape(4, 4) / 4
_PER_CHANNEL = {"s": _SCALE, "b": _SHIFT}
_FACTOR, _OFFSET, _CENTRE = (numbers.reshape(-1, 1, 1) for numbers in (_SCALE, _SHIFT, _MEAN))


def _peak(x: Array, axes: Any = -1, epsilon: float = 1e-5) -> Array:
    """The largest magnitude, in units of the spread: that the mean is rounded shows in these."""
    return np.asarray(np.abs(x).max(axes, keepdims=True) / np.sqrt(x.var(axes, keepdims=True) + epsilon))


def _centred(y: Array, x: Array) -> Array:
    return np.abs(y) + _peak(x)


def _by_channel(y: Array, peak: Array) -> Array:
    return np.abs(y - _OFFSET) + peak * _FACTOR + _OFFSET


def _grouped(y: Array, x: Array) -> Array:
    return _by_channel(y, _peak(x.reshape(len(x), 2, -1)).repeat(2, 1)[..., None])


def _batch(_: Array, x: Array) -> Array:
    return (np.abs(x) + _CENTRE) * _FACTOR / np.sqrt(_SPREAD + 1e-5).reshape(-1, 1, 1) + _OFFSET


def _low(x: Array) -> Array:
    """The size of x - max, whose rounding softmax multiplies by."""
    return 1 + np.abs(x - x.max(-1, keepdims=True))


def _rows(size: int) -> tuple[Case, ...]:
    ones = {"s": np.ones(size)}

    def case(
        name: str,
        body: str,
        scale: Callable[..., Array] | None = None,
        constants: dict[str, Array] | None = None,
        opset: int = 20,
    ) -> Case:
        feeds = {"x": f"rows {size}"}
        return Case(name, "normalizations", f"y = {body}", feeds, constants or {}, size, opset, size, scale=scale)

    return (
        case("LayerNormalization", "LayerNormalization<axis=-1>(x, s, b)", _centred, ones | {"b": np.zeros(size)}),
        case("RMSNormalization", "RMSNormalization<axis=-1>(x, s)", None, ones, 23),
        case("LpNormalization (1)", "LpNormalization<p=1>(x)"),
        case("LpNormalization", "LpNormalization(x)"),
        case(
            "MeanVarianceNormalization",
            "MeanVarianceNormalization<axes=[1]>(x)",
            lambda y, x: np.abs(y) + _peak(x, epsilon=1e-18),
        ),
        case("Softmax", "Softmax(x)", lambda y, x: y * _low(x)),
        case("LogSoftmax", "LogSoftmax(x)", lambda _, x: _low(x)),
    )


_STATISTICS = _PER_CHANNEL | {"m": _MEAN, "v": _SPREAD}
_OF_IMAGES: tuple[tuple[str, dict[str, Array], Callable[..., Array] | None, int], ...] = (
    ("InstanceNormalization(x, s, b)", _PER_CHANNEL, lambda y, x: _by_channel(y, _peak(x, (2, 3))), 20),
    ("GroupNormalization<num_groups=2>(x, s, b)", _PER_CHANNEL, _grouped, 21),
    ("BatchNormalization(x, s, b, m, v)", _STATISTICS, _batch, 20),
    ("LRN<size=3>(x)", {}, None, 20),
)


def _image(side: int, body: str, constants: dict[str, Array], scale: Callable[..., Array] | None, opset: int) -> Case:
    name, feeds = body.replace("<", "(").split("(")[0], {"x": f"images {_CHANNELS} {side}"}
    terms = _CHANNELS * side**2
    return Case(name, "normalizations", f"y = {body}", feeds, constants, side, opset, terms, scale=scale)


NORMALIZATIONS: tuple[Case, ...] = (
    *(case for size in FEW for case in _rows(size)),
    *(_image(side, *item) for side in _SIDES for item in _OF_IMAGES),
)
