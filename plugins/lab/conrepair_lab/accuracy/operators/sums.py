"""Operators that sum: reductions (of alike, cancelling or far from zero terms), products, convolutions, pools."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conrepair.ground.operators.record import Array
from conrepair_lab.accuracy.operators.case import BLOCKS, FEW, Case

_SUMS = ("ReduceSum", "ReduceMean", "CumSum")
_SCALES: dict[str, Callable[[Array, Array], Array]] = {
    "ReduceLogSum": lambda y, x: np.abs(y) + np.abs(x).sum(-1, keepdims=True) / np.abs(x.sum(-1, keepdims=True)),
    "ReduceLogSumExp": lambda y, x: np.abs(y) + np.abs(x).max(-1, keepdims=True),
}
_OTHERS = ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd", "ReduceMax", "ReduceMin")


def _reduction(name: str, size: int) -> Case:
    body, feeds, sums = f"y = {name}(x, axes)", {"x": f"rows {size}"}, name in _SUMS
    constants = {"axes": np.array(1 if name == "CumSum" else [-1])}
    return Case(name, "reductions", body, feeds, constants, size, terms=size, sums=sums, scale=_SCALES.get(name))


REDUCTIONS: tuple[Case, ...] = tuple(_reduction(name, size) for size in FEW for name in (*_SUMS, *_SCALES, *_OTHERS))

_OUTPUTS = 17
_SIDE = 7


def _weights(*shape: int) -> Array:
    """Normally distributed, in so few bits that every element type has them."""
    return np.clip(np.rint(32 * np.random.default_rng(sum(shape)).normal(size=shape)), -128, 128) / 32


def _product(name: str, body: str, feed: str, size: int, terms: int, **constants: Array) -> Case:
    return Case(name, "products", body, {"x": feed}, constants, size, terms=terms, sums=True)


def _matrices(size: int) -> tuple[Case, ...]:
    feed, weights, terms = f"rows {size}", _weights(size, _OUTPUTS), size + 1
    return (
        _product("MatMul", "y = MatMul(x, w)", feed, size, terms, w=weights),
        _product("Gemm", "y = Gemm(x, w, b)", feed, size, terms, w=weights, b=np.ones(_OUTPUTS)),
        _product("MatMul of inputs", "t = Transpose(x) y = MatMul(x, t)", feed, size, terms),
    )


def _convolutions(size: int) -> tuple[Case, ...]:
    def case(name: str, *shape: int, given: str = "", feed: str = f"images {size} {_SIDE}") -> Case:
        """A case of the operator that the name begins with."""
        weights = _weights(*shape)
        return _product(name, f"y = {name.split()[0]}{given}(x, w)", feed, size, weights[0].size, w=weights)

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

_SIDES = (3, 8, 17, 33, 65)
_STEPS = "kernel_shape=[3, 3], strides=[2, 2]"
_DOUBLED = 'mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"'
_BODIES = {
    **{name: f"{name}<{_STEPS}>(x)" for name in ("AveragePool", "MaxPool", "LpPool")},
    **{name: f"{name}(x)" for name in ("GlobalAveragePool", "GlobalMaxPool")},
    "Resize (linear)": 'Resize<mode="linear">(x, , twice)',
    "Resize (nearest)": f"Resize<{_DOUBLED}>(x, , twice)",
}

WINDOWS: tuple[Case, ...] = tuple(
    Case(
        *(operator, "windows", f"y = {body}", {"x": f"images 4 {side}"}),
        {"twice": np.array([1, 1, 2, 2], np.float32)} if "Resize" in operator else {},
        side,
        terms=max(9, side**2),
        sums="Average" in operator or "linear" in operator,
    )
    for side in _SIDES
    for operator, body in _BODIES.items()
)
