"""Functions of two numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conrepair.operators.record import Array, Operator

__all__ = ["PAIRS"]

_LOGICAL = "of truth values"
_STEP = "a step: 0 but where it jumps"


def _pair(
    value: Callable[..., Any], derivative: Callable[..., Any] | str, family: str = "", **traits: Any
) -> Operator:
    roles = {"operand": "broadcast with the tensor"}
    return Operator(value, derivative, roles, {"constant_first": False}, family, 2, **traits)


def _extreme(value: Callable[..., Any], derivative: Callable[..., Any]) -> Operator:
    return _pair(value, derivative, "arithmetic.extreme", turns=(), exact=True, commutes=True)


def _prelu(x: Array, slope: Array) -> Array:
    return np.where(x < 0, slope * x, x)


def _prelu_slopes(x: Array, slope: Array) -> tuple[Array, Array]:
    return np.where(x < 0, slope, 1), np.where(x < 0, x, 0)


PAIRS: Mapping[str, Operator] = {
    "Add": _pair(np.add, lambda a, b: (1.0, 1.0), "arithmetic.sum", commutes=True),
    "Sub": _pair(np.subtract, lambda a, b: (1.0, -1.0), "arithmetic.sum"),
    "Mul": _pair(np.multiply, lambda a, b: (b, a), "arithmetic.product", commutes=True),
    "Div": _pair(np.divide, lambda a, b: (1 / b, -a / (b * b)), "arithmetic.product"),
    "Pow": _pair(np.power, lambda a, b: (b * a ** (b - 1), a**b * np.log(a)), "arithmetic.power"),
    "Min": _extreme(np.minimum, lambda a, b: (a <= b, a > b)),
    "Max": _extreme(np.maximum, lambda a, b: (a >= b, a < b)),
    "Mod": _pair(np.mod, lambda a, b: (1.0, -np.floor(a / b)), "arithmetic.remainder"),
    "And": _pair(np.logical_and, _LOGICAL, logical=True, exact=True, commutes=True),
    "Or": _pair(np.logical_or, _LOGICAL, logical=True, exact=True, commutes=True),
    "Xor": _pair(np.logical_xor, _LOGICAL, logical=True, exact=True, commutes=True),
    "Equal": _pair(np.equal, _STEP, exact=True, commutes=True),
    "Greater": _pair(np.greater, _STEP, exact=True),
    "GreaterOrEqual": _pair(np.greater_equal, _STEP, exact=True),
    "Less": _pair(np.less, _STEP, exact=True),
    "LessOrEqual": _pair(np.less_equal, _STEP, exact=True),
    "PRelu": Operator(
        *(_prelu, _prelu_slopes, {"slope": "broadcast with the tensor"}),
        family="function.rectifier",
        operands=2,
        turns=(0.0,),
    ),
}
"""By name."""
