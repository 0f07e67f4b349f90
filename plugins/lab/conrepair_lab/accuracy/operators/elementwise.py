"""Functions of one number, and of two."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import onnx

from conrepair.ground.operators.functions import FUNCTIONS
from conrepair.ground.operators.pairs import PAIRS
from conrepair.ground.operators.record import Array
from conrepair_lab.accuracy.operators.case import Case

_ELSEWHERE = {"comparison", "arithmetic.remainder"}  # the latter ONNX has of whole numbers alone, but for fmod
_PAIRS = {
    **{name: f"{name}(a, b)" for name, item in PAIRS.items() if item.family not in _ELSEWHERE and not item.logical},
    "Mean": "Mean(a, b)",
    "Mod (fmod)": "Mod<fmod=1>(a, b)",
    "Sum": "Sum(a, b, b)",
}
BINARY: tuple[Case, ...] = tuple(
    Case(operator, "binary", f"y = {body}", {"a": "left", "b": "right"}, sums=operator in {"Mean", "Sum"})
    for operator, body in _PAIRS.items()
)

_NEAR = 1 + 2.0**-6  # where what cancels ends, an element type of few bits is as near


def _scale(operator: str) -> Callable[[Array, Array], Array] | None:
    """What errors are relative to where terms cancel, as the operator's record says it."""
    record = FUNCTIONS.get(operator)
    if record is None or (terms := record.terms) is None:
        return None
    return lambda _, x: np.fmax(terms(x * _NEAR, **record.attributes), terms(x / _NEAR, **record.attributes))


_NUMBERS = {"low": -1.0, "high": 1.0, "two": 2.0, "three": 3.0, "half": 0.5, "minus": -1.0}
_OWN = {
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
_PLAIN = {
    name: f"y = {name}(x)"
    for name, item in sorted(FUNCTIONS.items())
    if name in _OWN or (not item.logical and onnx.defs.has(name, Case.opset))
}


def _case(operator: str, body: str) -> Case:
    # Of another input than the functions that converters make of powers: of two outputs that are one they lose one.
    feed = "values again" if "Pow" in body else "values"
    constants = {name: np.array(value) for name, value in _NUMBERS.items() if re.search(rf"\b{name}\b", body)}
    return Case(operator, "unary", body, {"x": feed}, constants, scale=_scale(operator))


UNARY: tuple[Case, ...] = tuple(_case(*item) for item in {**_PLAIN, **_OWN}.items())
