"""Normalizations and the softmax family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conrepair.accuracy import scaled
from conrepair.accuracy.operators.case import FEW, Case
from conrepair.accuracy.scaled import Array, Exact

__all__ = ["NORMALIZATIONS"]

_CHANNELS = 4
_SIDES = (3, 8, 17, 33)
_SCALE, _SHIFT, _MEAN, _SPREAD = np.arange(1, 17).reshape(4, 4) / 4
_PER_CHANNEL = {"s": _SCALE, "b": _SHIFT}


def _per_channel(values: Array) -> Array:
    return values.reshape(-1, 1, 1)


def _scaled(exact_values: Exact) -> Exact:
    value, scale = exact_values
    factor, shift = _per_channel(_SCALE), _per_channel(_SHIFT)
    return value * factor + shift, scale * factor + shift


def _grouped(x: Array) -> Exact:
    value, scale = scaled.normalized(x.reshape(len(x), 2, -1))
    return _scaled((value.reshape(x.shape), scale.reshape(x.shape)))


def _batch(x: Array) -> Exact:
    factor, mean = _per_channel(_SCALE / np.sqrt(_SPREAD + 1e-5)), _per_channel(_MEAN)
    shift = _per_channel(_SHIFT)
    return (x - mean) * factor + shift, (np.abs(x) + mean) * factor + shift


def _local(x: Array) -> Array:
    squares = np.pad(x**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    near = np.sum([squares[:, first : first + x.shape[1]] for first in range(3)], 0)
    return np.asarray(x / (1 + 1e-4 / 3 * near) ** 0.75)


def _root(x: Array) -> Array:
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5))


def _rows(size: int) -> tuple[Case, ...]:
    feeds, ones = {"x": f"rows {size}"}, {"s": np.ones(size)}
    both = ones | {"b": np.zeros(size)}

    def case(
        name: str, body: str, truth: Callable[..., Any], constants: dict[str, Array] | None = None, opset: int = 20
    ) -> Case:
        return Case(name, "normalizations", body, feeds, truth, constants or {}, size, opset, size)

    return (
        case("LayerNormalization", "y = LayerNormalization<axis=-1>(x, s, b)", scaled.normalized, both),
        case("RMSNormalization", "y = RMSNormalization<axis=-1>(x, s)", _root, ones, 23),
        case("LpNormalization (1)", "y = LpNormalization<p=1>(x)", lambda x: x / np.abs(x).sum(-1, keepdims=True)),
        case("LpNormalization", "y = LpNormalization(x)", lambda x: x / np.sqrt((x**2).sum(-1, keepdims=True))),
        case(
            "MeanVarianceNormalization",
            "y = MeanVarianceNormalization<axes=[1]>(x)",
            lambda x: scaled.normalized(x, epsilon=1e-18),
        ),
        case("Softmax", "y = Softmax(x)", scaled.softmax),
        case("LogSoftmax", "y = LogSoftmax(x)", scaled.log_softmax),
    )


def _images(side: int) -> tuple[Case, ...]:
    feeds = {"x": f"images {_CHANNELS} {side}"}

    def case(
        name: str, body: str, truth: Callable[..., Any], constants: dict[str, Array] | None = None, opset: int = 20
    ) -> Case:
        return Case(name, "normalizations", body, feeds, truth, constants or {}, side, opset, _CHANNELS * side**2)

    return (
        case(
            "InstanceNormalization",
            "y = InstanceNormalization(x, s, b)",
            lambda x: _scaled(scaled.normalized(x, (2, 3))),
            _PER_CHANNEL,
        ),
        case("GroupNormalization", "y = GroupNormalization<num_groups=2>(x, s, b)", _grouped, _PER_CHANNEL, opset=21),
        case(
            "BatchNormalization",
            "y = BatchNormalization(x, s, b, m, v)",
            _batch,
            _PER_CHANNEL | {"m": _MEAN, "v": _SPREAD},
        ),
        case("LRN", "y = LRN<size=3>(x)", _local),
    )


NORMALIZATIONS: tuple[Case, ...] = (
    *(case for size in FEW for case in _rows(size)),
    *(case for side in _SIDES for case in _images(side)),
)
