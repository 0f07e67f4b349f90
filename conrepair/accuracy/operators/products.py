"""Products of matrices, and convolutions, at sizes around those of blocks."""

from __future__ import annotations

import numpy as np

from conrepair.accuracy.operators.case import BLOCKS, Case
from conrepair.operators.record import Array

__all__ = ["PRODUCTS"]

_OUTPUTS = 17
_SIDE = 7


def _weights(*shape: int) -> Array:
    """Normally distributed, in so few bits that every element type has them."""
    return np.clip(np.rint(32 * np.random.default_rng(sum(shape)).normal(size=shape)), -128, 128) / 32


def _case(name: str, body: str, feed: str, size: int, terms: int, **constants: Array) -> Case:
    return Case(name, "products", body, {"x": feed}, constants, size, terms=terms, sums=True)


def _matrices(size: int) -> tuple[Case, ...]:
    feed, weights, terms = f"rows {size}", _weights(size, _OUTPUTS), size + 1
    return (
        _case("MatMul", "y = MatMul(x, w)", feed, size, terms, w=weights),
        _case("Gemm", "y = Gemm(x, w, b)", feed, size, terms, w=weights, b=np.ones(_OUTPUTS)),
        _case("MatMul of inputs", "t = Transpose(x) y = MatMul(x, t)", feed, size, terms),
    )


def _convolutions(size: int) -> tuple[Case, ...]:
    def case(name: str, *shape: int, given: str = "", feed: str = f"images {size} {_SIDE}") -> Case:
        """Of the operator that the name begins with."""
        weights = _weights(*shape)
        return _case(name, f"y = {name.split()[0]}{given}(x, w)", feed, size, weights[0].size, w=weights)

    return (
        case("Conv", size, size, 3, 3),
        case("Conv 1x1", size, size, 1, 1),
        case("Conv depthwise", size, 1, 3, 3, given=f"<group={size}>"),
        case("ConvTranspose", size, 2, 3, 3, given="<strides=[2, 2]>"),
        *([case("Conv by width", 8, 3, 3, 3, feed=f"images 3 {size}")] if size >= 3 else []),
    )


PRODUCTS: tuple[Case, ...] = (
    *(case for size in BLOCKS for case in _matrices(size)),
    *(case for size in BLOCKS for case in _convolutions(size)),
)
