"""Products of matrices, and convolutions, at sizes around those of blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conrepair.accuracy import scaled
from conrepair.accuracy.operators.case import BLOCKS, Case
from conrepair.accuracy.scaled import Array, Exact

__all__ = ["PRODUCTS"]

_OUTPUTS = 17
_SIDE = 7


def _weights(*shape: int) -> Array:
    """Normally distributed, in so few bits that every element type has them."""
    return np.clip(np.rint(32 * np.random.default_rng(sum(shape)).normal(size=shape)), -128, 128) / 32


def _product(x: Array, weights: Array, shift: float = 0.0) -> Exact:
    return x @ weights + shift, np.abs(x) @ np.abs(weights) + abs(shift)


def _matrices(size: int) -> tuple[Case, ...]:
    feeds, weights = {"x": f"rows {size}"}, _weights(size, _OUTPUTS)

    def case(name: str, body: str, truth: Callable[..., Any], constants: dict[str, Array]) -> Case:
        return Case(name, "products", body, feeds, truth, constants, size, terms=size + 1)

    ones = np.ones(_OUTPUTS)
    return (
        case("MatMul", "y = MatMul(x, w)", lambda x: _product(x, weights), {"w": weights}),
        case("Gemm", "y = Gemm(x, w, b)", lambda x: _product(x, weights, 1.0), {"w": weights, "b": ones}),
        case("MatMul of inputs", "t = Transpose(x) y = MatMul(x, t)", lambda x: _product(x, x.T), {}),
    )


def _convolutions(size: int) -> tuple[Case, ...]:
    kernels = {side: _weights(size, size, side, side) for side in (1, 3)}
    separate, back, few = _weights(size, 1, 3, 3), _weights(size, 2, 3, 3), _weights(8, 3, 3, 3)
    of_channels, of_sides = {"x": f"images {size} {_SIDE}"}, {"x": f"images 3 {size}"}

    def case(
        name: str, body: str, weights: Array, truth: Callable[..., Any], feeds: dict[str, str] = of_channels
    ) -> Case:
        return Case(name, "products", f"y = {body}", feeds, truth, {"w": weights}, size, terms=weights[0].size)

    return (
        case("Conv", "Conv(x, w)", kernels[3], lambda x: scaled.convolved(x, kernels[3])),
        case("Conv 1x1", "Conv(x, w)", kernels[1], lambda x: scaled.convolved(x, kernels[1])),
        case(
            "Conv depthwise",
            f"Conv<group={size}>(x, w)",
            separate,
            lambda x: scaled.convolved(x, separate, groups=size),
        ),
        case(
            "ConvTranspose",
            "ConvTranspose<strides=[2, 2]>(x, w)",
            back,
            lambda x: scaled.convolved_back(x, back),
        ),
        *(
            [case("Conv by width", "Conv(x, w)", few, lambda x: scaled.convolved(x, few), of_sides)]
            if size >= 3
            else []
        ),
    )


PRODUCTS: tuple[Case, ...] = (
    *(case for size in BLOCKS for case in _matrices(size)),
    *(case for size in BLOCKS for case in _convolutions(size)),
)
