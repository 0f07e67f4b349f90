"""Operators along axes: the softmax family, reductions, normalizations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conrepair.ground.operators.record import BY_CHANNEL, STEP, Array, Operator

_OF_ALL = "each element changes all results of its row"
_Axes = int | tuple[int, ...] | None


def _shifted(x: Array, axis: int | tuple[int, ...] | None) -> tuple[Array, Array]:
    """X less its largest, and the sum of all e^(x - largest) without the largest one's own."""
    peak = x.max(axis=axis, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0)
    low = x - peak
    others = np.where(low == 0, 0, np.exp(low)).sum(axis=axis, keepdims=True)
    return low, others + ((low == 0).sum(axis=axis, keepdims=True) - 1)


def softmax(x: Array, axis: int = -1) -> Array:
    """e^x, by the sum of all e^x along an axis."""
    low, rest = _shifted(x.astype(np.longdouble), axis)
    return np.asarray(np.exp(low) / (1 + rest)).astype(x.dtype)


def _log_softmax(x: Array, axis: int = -1) -> Array:
    """The logarithm of softmax, where that is 1 but for some digits, too."""
    low, rest = _shifted(x.astype(np.longdouble), axis)
    return np.asarray(low - np.log1p(rest)).astype(x.dtype)


def _reduction(function: Callable[..., Any], family: str = "", *, exact: bool = False) -> Operator:
    def value(x: Array, *, axes: tuple[int, ...] | None = None, keepdims: bool = True) -> Array:
        return np.asarray(function(x, axis=axes, keepdims=keepdims))

    return Operator(value, _OF_ALL, attributes={"axes": None, "keepdims": True}, family=family, exact=exact)


def _normalization(value: Callable[..., Array] | str, roles: Mapping[str, str], **more: Any) -> Operator:
    return Operator(value, _OF_ALL, roles, {"epsilon": 1e-5, **more}, "normalization")


def _layer(x: Array, scale: Array, bias: Array | float = 0.0, *, axes: _Axes, epsilon: float) -> Array:
    return _root(x - x.mean(axes, keepdims=True), scale, axes=axes, epsilon=epsilon) + bias


def _root(x: Array, scale: Array, *, axes: _Axes, epsilon: float) -> Array:
    return np.asarray(x / np.sqrt((x * x).mean(axes, keepdims=True) + epsilon) * scale)


def _unit(x: Array, *, p: int, axes: _Axes, epsilon: float = 0.0) -> Array:
    size = np.maximum((np.abs(x) ** p).sum(axes, keepdims=True), epsilon) ** (1 / p)
    return np.where(size == 0, 0, x / size)


def _running(x: Array, *, axis: int, exclusive: bool = False, reverse: bool = False) -> Array:
    given = np.flip(x, axis) if reverse else x
    total = np.cumsum(given, axis) - (given if exclusive else 0)
    return np.flip(total, axis) if reverse else total


_BOTH = {"scale": "[channels]", "bias": "[channels]"}
ROWS: Mapping[str, Operator] = {
    "Softmax": Operator(softmax, _OF_ALL, {}, {"axis": None}, "softmax"),
    "LogSoftmax": Operator(_log_softmax, _OF_ALL, {}, {"axis": None}, "softmax"),
    "ReduceMean": _reduction(np.mean, "pooling"),
    "ReduceSum": _reduction(np.sum, "pooling"),
    "ReduceMax": _reduction(np.max, "pooling", exact=True),
    "ReduceMin": _reduction(np.min, exact=True),
    "ReduceProd": _reduction(np.prod),
    "ReduceL2": _reduction(lambda x, **along: np.sqrt(np.sum(x * x, **along))),
    "ReduceSumSquare": _reduction(lambda x, **along: np.sum(x * x, **along)),
    "ArgMax": Operator(np.argmax, STEP, {}, {"axis": None, "keepdims": True}, exact=True),
    "ArgMin": Operator(np.argmin, STEP, {}, {"axis": None, "keepdims": True}, exact=True),
    "CumSum": Operator(_running, _OF_ALL, attributes={"axis": None, "exclusive": False, "reverse": False}),
    "BatchNormalization": _normalization(
        BY_CHANNEL, {**_BOTH, "mean": "[channels]", "variance": "[channels]"}, training_mode=False
    ),
    "LayerNormalization": _normalization(_layer, {"scale": "[*normalized]", "bias": "[*normalized]"}, axes=None),
    "RMSNormalization": _normalization(_root, {"scale": "[*normalized]"}, axes=None),
    "GroupNormalization": _normalization(BY_CHANNEL, _BOTH, groups=None),
    "InstanceNormalization": _normalization(BY_CHANNEL, _BOTH),
    "LpNormalization": Operator(_unit, _OF_ALL, attributes={"p": 2, "axes": None, "epsilon": 0.0}),
    "LRN": Operator(BY_CHANNEL, _OF_ALL, attributes={"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": None}),
}
"""By name."""
