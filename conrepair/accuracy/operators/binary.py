"""Functions of two numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conrepair.accuracy.operators.case import Case
from conrepair.accuracy.scaled import Array

__all__ = ["BINARY"]


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
    "PRelu": ("PRelu(a, b)", lambda a, b: np.where(a < 0, a * b, a)),
}

BINARY: tuple[Case, ...] = tuple(
    Case(operator, "binary", f"y = {body}", {"a": "left", "b": "right"}, truth)
    for operator, (body, truth) in _FUNCTIONS.items()
)
