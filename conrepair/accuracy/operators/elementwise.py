"""Functions of one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conrepair.accuracy.operators.case import Case
from conrepair.accuracy.scaled import Array
from conrepair.operators import functions
from conrepair.operators.all_operators import RECORDS
from conrepair.operators.functions import FUNCTIONS, OF_ONNX

__all__ = ["BINARY", "UNARY"]


# Functions of two numbers.


def _mean(a: Array, b: Array) -> tuple[Array, Array]:
    return (a + b) / 2, (np.abs(a) + np.abs(b)) / 2


_FUNCTIONS: dict[str, tuple[str, Callable[[Array, Array], Any]]] = {
    "Add": ("Add(a, b)", np.add),
    "Sub": ("Sub(a, b)", np.subtract),
    "Mul": ("Mul(a, b)", np.multiply),
    "Div": ("Div(a, b)", np.divide),
    "Pow": ("Pow(a, b)", np.power),
    "Mod (fmod)": ("Mod<fmod=1>(a, b)", np.fmod),
    "Max": ("Max(a, b)", np.maximum),
    "Min": ("Min(a, b)", np.minimum),
    "Mean": ("Mean(a, b)", _mean),
    "Sum": ("Sum(a, b, b)", lambda a, b: (a + 2 * b, np.abs(a) + 2 * np.abs(b))),
    "PRelu": ("PRelu(a, b)", RECORDS["PRelu"].value),
}

BINARY: tuple[Case, ...] = tuple(
    Case(operator, "binary", f"y = {body}", {"a": "left", "b": "right"}, truth)
    for operator, (body, truth) in _FUNCTIONS.items()
)


_SIXTH, _SLOPE = 1 / 6, float(np.float32(0.01))


def _terms(x: Array, slope: float) -> Array:
    """The magnitude of a line's terms, which cancel near its zero, within 0 and 1."""
    return np.where(np.abs(slope * x) < 1, np.abs(slope * x) + 0.5, 0)


def _case(
    operator: str, truth: Callable[[Array], Any], body: str = "", constants: Mapping[str, Array] | None = None
) -> Case:
    # Of another input than the functions that converters make of powers: of two outputs that are one they lose one.
    feed = "values again" if "Pow" in body else "values"
    return Case(operator, "unary", body or f"y = {operator}(x)", {"x": feed}, truth, constants or {})


_WITH_ATTRIBUTES = {"Celu", "Clip", "LeakyRelu", "ThresholdedRelu"}
_NOT_OF_ONNX = {"Expm1", "Log1p", "Rsqrt", "Square"}
_OTHERWISE = _WITH_ATTRIBUTES | _NOT_OF_ONNX | {"HardSigmoid", "HardSwish", "Not", "Swish"}

UNARY: tuple[Case, ...] = (
    *(_case(name, RECORDS[name].value) for name in sorted((FUNCTIONS.keys() | OF_ONNX.keys()) - _OTHERWISE)),
    _case("HardSigmoid", lambda x: (functions.hard_sigmoid(x), _terms(x, 0.2))),
    _case("HardSwish", lambda x: (functions.hard_swish(x), np.abs(x) * _terms(x, _SIXTH))),
    _case("Celu", lambda x: functions.celu(x, alpha=1.5), "y = Celu<alpha=1.5>(x)"),
    _case(
        "Clip", lambda x: np.clip(x, -1, 1), "y = Clip(x, low, high)", {"low": np.array(-1.0), "high": np.array(1.0)}
    ),
    _case("Gelu (tanh)", lambda x: functions.gelu(x, approximate="tanh"), 'y = Gelu<approximate="tanh">(x)'),
    _case("LeakyRelu", lambda x: functions.leaky_relu(x, alpha=_SLOPE), "y = LeakyRelu<alpha=0.01>(x)"),
    _case("LogSigmoid", lambda x: -functions.softplus(-x), "m = Neg(x) s = Softplus(m) y = Neg(s)"),
    _case("ThresholdedRelu", lambda x: np.where(x > 1, x, 0), "y = ThresholdedRelu<alpha=1.0>(x)"),
    # Pieces of graphs that compilers know by heart, and powers that they write otherwise.
    _case("Silu", functions.swish, "s = Sigmoid(x) y = Mul(x, s)"),
    _case("Rsqrt", lambda x: 1 / np.sqrt(x), "s = Sqrt(x) y = Reciprocal(s)"),
    _case("Pow 2", np.square, "y = Pow(x, two)", {"two": np.array(2.0)}),
    _case("Pow 3", lambda x: x**3, "y = Pow(x, three)", {"three": np.array(3.0)}),
    _case("Pow 0.5", np.sqrt, "y = Pow(x, half)", {"half": np.array(0.5)}),
    _case("Pow -1", np.reciprocal, "y = Pow(x, minus)", {"minus": np.array(-1.0)}),
    _case("2 to the x", np.exp2, "y = Pow(two, x)", {"two": np.array(2.0)}),
)
