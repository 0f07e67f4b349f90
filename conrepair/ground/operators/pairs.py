"""Functions of two numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conrepair.ground.operators.record import STEP, Function, Operator

_LOGICAL = "of truth values"
_EXTREME = "arithmetic.extreme"


def _pair(value: Function, derivative: Function | str, family: str = "", **traits: Any) -> Operator:
    roles = {"operand": "broadcast with the tensor"}
    return Operator(value, derivative, roles, {"constant_first": False}, family, 2, **traits)


PAIRS: Mapping[str, Operator] = {
    "Add": _pair(np.add, lambda a, b: (1.0, 1.0), "arithmetic.sum", commutes=True),
    "Sub": _pair(np.subtract, lambda a, b: (1.0, -1.0), "arithmetic.sum"),
    "Mul": _pair(np.multiply, lambda a, b: (b, a), "arithmetic.product", commutes=True),
    "Div": _pair(np.divide, lambda a, b: (1 / b, -a / (b * b)), "arithmetic.product"),
    "Pow": _pair(np.power, lambda a, b: (b * a ** (b - 1), a**b * np.log(a)), "arithmetic.power"),
    "Min": _pair(np.minimum, lambda a, b: (a <= b, a > b), _EXTREME, turns=(), exact=True, commutes=True),
    "Max": _pair(np.maximum, lambda a, b: (a >= b, a < b), _EXTREME, turns=(), exact=True, commutes=True),
    "Mod": _pair(np.mod, lambda a, b: (1.0, -np.floor(a / b)), "arithmetic.remainder"),
    "And": _pair(np.logical_and, _LOGICAL, logical=True, exact=True, commutes=True),
    "Or": _pair(np.logical_or, _LOGICAL, logical=True, exact=True, commutes=True),
    "Xor": _pair(np.logical_xor, _LOGICAL, logical=True, exact=True, commutes=True),
    "Equal": _pair(np.equal, STEP, "comparison", exact=True, commutes=True),
    "Greater": _pair(np.greater, STEP, "comparison", exact=True),
    "GreaterOrEqual": _pair(np.greater_equal, STEP, "comparison", exact=True),
    "Less": _pair(np.less, STEP, "comparison", exact=True),
    "LessOrEqual": _pair(np.less_equal, STEP, "comparison", exact=True),
    "PRelu": Operator(
        lambda x, slope: np.where(x < 0, slope * x, x),
        lambda x, slope: (np.where(x < 0, slope, 1), np.where(x < 0, x, 0)),
        {"slope": "broadcast with the tensor"},
        *({}, "function.rectifier", 2, (0.0,)),
    ),
}
"""By name."""
