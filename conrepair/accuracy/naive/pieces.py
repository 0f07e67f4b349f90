"""What libraries make of functions: approximations, written for arrays of any float type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conrepair.accuracy.scaled import Array

__all__ = [
    "LOG_2",
    "erf_1964",
    "exp_one_constant",
    "log_upwards",
    "power",
    "sigmoid_rational",
    "softplus_held",
    "turned",
    "typed",
]

LOG_2 = float(np.log(2.0))
_FIRST, _LATER = 0.3275911, (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
_ABOVE = (
    4.37031012579801e-11,
    1.15627324459942e-07,
    6.08574864600143e-05,
    8.51377133304701e-03,
    2.48287947061529e-01,
)
_BELOW = (
    *(6.10247389755681e-13, 5.76102136993427e-09, 6.29106785017040e-06),
    *(1.70198817374094e-03, 1.16817656904453e-01, 9.93151921023180e-01),
)


def typed(value: float, x: Array) -> Any:
    """A number in the type of x."""
    return x.dtype.type(value)


def _polynomial(x: Array, factors: tuple[float, ...]) -> Array:
    """By Horner."""
    total = np.full_like(x, factors[0])
    for factor in factors[1:]:
        total = total * x + typed(factor, x)
    return total


def exp_one_constant(x: Array) -> Any:
    """2^n e^r with r = x - n log 2, where log 2 is rounded once."""
    held = np.maximum(x, typed(-127.5 * LOG_2, x))
    whole = np.floor(held / typed(LOG_2, x) + typed(0.5, x))
    return np.exp(held - whole * typed(LOG_2, x)) * np.exp2(whole)


def log_upwards(x: Array) -> Any:
    """The sum of n log 2 and log m, where x = 2^n m."""
    half, exponent = np.frexp(x)
    return (exponent - 1).astype(x.dtype) * typed(LOG_2, x) + np.log(2 * half)


def erf_1964(x: Array) -> Any:
    """Abramowitz and Stegun, 7.1.26."""
    size = np.abs(x)
    t = 1 / (1 + typed(_FIRST, x) * size)
    return np.copysign(1 - _polynomial(t, _LATER) * t * np.exp(-size * size), x)


def sigmoid_rational(x: Array) -> Any:
    """A quotient of polynomials, and a half."""
    held = np.clip(x, -18, 18)
    square = held * held
    return np.maximum(held * _polynomial(square, _ABOVE) / _polynomial(square, _BELOW) + typed(0.5, x), 0)


def softplus_held(x: Array) -> Any:
    """Without an exponential above 1."""
    return np.maximum(x, 0) + np.log(1 + np.exp(-np.abs(x)))


def turned(function: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """A function of angles, behind whole turns taken away in the type of x."""

    def compute(x: Array) -> Any:
        turn = typed(2 * np.pi, x)
        return function(x - np.rint(x / turn) * turn)

    return compute


def power(x: Array, y: Array) -> Any:
    """By logarithms."""
    return np.exp(y * np.log(np.abs(x))) * np.where((x < 0) & (y % 2 == 1), -1, 1)
