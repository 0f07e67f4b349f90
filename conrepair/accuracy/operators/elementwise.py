"""Functions of one number, and of two."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from conrepair.accuracy.operators.case import Case
from conrepair.accuracy.scaled import Array
from conrepair.operators.functions import FUNCTIONS, OF_ONNX

__all__ = ["BINARY", "UNARY"]

_PAIRS = {
    **{name: f"{name}(a, b)" for name in ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "PRelu")},
    "Mod (fmod)": "Mod<fmod=1>(a, b)",
    "Sum": "Sum(a, b, b)",
}
BINARY: tuple[Case, ...] = tuple(
    Case(operator, "binary", f"y = {body}", {"a": "left", "b": "right"}, sums=operator in {"Mean", "Sum"})
    for operator, body in _PAIRS.items()
)


def _terms(x: Array, slope: float) -> Array:
    """The magnitude of a line's terms, which cancel near its zero, within 0 and 1."""
    return np.where(np.abs(slope * x) < 1, np.abs(slope * x) + 0.5, 0)


_SCALES: dict[str, Callable[[Array, Array], Array]] = {
    "HardSigmoid": lambda _, x: _terms(x, 0.2),
    "HardSwish": lambda _, x: np.abs(x) * _terms(x, 1 / 6),
}
_NUMBERS = {"low": -1.0, "high": 1.0, "two": 2.0, "three": 3.0, "half": 0.5, "minus": -1.0}
_BODIES = {
    **{name: f"y = {name}(x)" for name in sorted(FUNCTIONS.keys() | OF_ONNX.keys())},
    "Celu": "y = Celu<alpha=1.5>(x)",
    "Clip": "y = Clip(x, low, high)",
    "Gelu (tanh)": 'y = Gelu<approximate="tanh">(x)',
    "LogSigmoid": "m = Neg(x) s = Softplus(m) y = Neg(s)",
    # Pieces of graphs that compilers know by heart, and powers that they write otherwise.
    "Silu": "s = Sigmoid(x) y = Mul(x, s)",
    "Rsqrt": "s = Sqrt(x) y = Reciprocal(s)",
    "Pow 2": "y = Pow(x, two)",
    "Pow 3": "y = Pow(x, three)",
    "Pow 0.5": "y = Pow(x, half)",
    "Pow -1": "y = Pow(x, minus)",
    "2 to the x": "y = Pow(two, x)",
}
_NOT_OF_ONE_OPSET = {"Expm1", "Log1p", "Not", "Square", "Swish"}


def _case(operator: str, body: str) -> Case:
    # Of another input than the functions that converters make of powers: of two outputs that are one they lose one.
    feed = "values again" if "Pow" in body else "values"
    constants = {name: np.array(value) for name, value in _NUMBERS.items() if re.search(rf"\b{name}\b", body)}
    return Case(operator, "unary", body, {"x": feed}, constants, scale=_SCALES.get(operator))


UNARY: tuple[Case, ...] = tuple(_case(*item) for item in _BODIES.items() if item[0] not in _NOT_OF_ONE_OPSET)
