"""Functions of one or two numbers, in forms that lose digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from conrepair.accuracy.naive import pieces
from conrepair.accuracy.naive.form import Form
from conrepair.accuracy.naive.pieces import LOG_2, typed
from conrepair.accuracy.scaled import Array
from conrepair.operators.functions import sigmoid, softplus

__all__ = ["FUNCTIONS"]

_TANH, _ERF = 4.89352455891786e-03, 1.60960333262415e-02
_RATIONAL = "a rational function whose last product is subnormal below 1e-36"
_TINY, _BELOW, _GROWS = "loses its digits for tiny x", "loses its digits from -5 down", "the error grows with |x|"


def _sinh(x: Array) -> Any:
    return (np.exp(x) - np.exp(-x)) / 2


def _sinh_shifted(x: Array) -> Any:
    return np.exp(x - typed(LOG_2, x)) - np.exp(-x - typed(LOG_2, x))


def _rational(factor: float, right: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """A rational function that is right, but for its last product, which is smaller than x before it's divided."""

    def compute(x: Array) -> Any:
        slope = float(right(np.array(1e-9)) / 1e-9)
        return np.where(np.abs(x) < 1e-30, x * typed(factor, x) / typed(factor / slope, x), right(x))

    return compute


def _gelu_inner(x: Array) -> Any:
    return typed(np.sqrt(2 / np.pi), x) * (x + typed(0.044715, x) * x * x * x)


_SIGMOID = (
    (
        "sigmoid by p(x)/q(x) + 1/2, a rational function with |x| held below 18: loses its digits from -8 down",
        pieces.sigmoid_rational,
    ),
    (
        "sigmoid by (1 + tanh(x/2)) / 2: loses its digits from -8 down",
        lambda x: typed(0.5, x) + typed(0.5, x) * np.tanh(x / 2),
    ),
    ("sigmoid by e^x / (1 + e^x): NaN from 89 on", lambda x: np.exp(x) / (1 + np.exp(x))),
    ("sigmoid by 1 / (1 + e^-x): 0 below -88.7", lambda x: 1 / (1 + np.exp(-x))),
    ("sigmoid by 1 / (1 + e^-x) with a fast e^x", lambda x: 1 / (1 + pieces.exp_one_constant(-x))),
)
_SOFTPLUS = (
    (f"softplus by log(1 + e^x): {_BELOW}, infinite from 89 on", lambda x: np.log(1 + np.exp(x))),
    (f"softplus by max(x, 0) + log(1 + e^-|x|): {_BELOW}", pieces.softplus_held),
    ("softplus with subnormal values, whose last digits are missing", softplus),
)

FUNCTIONS: tuple[Form, ...] = (
    Form("Tanh", f"tanh by (e^2x - 1) / (e^2x + 1): {_TINY}", lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1)),
    Form(
        "Tanh",
        f"tanh by (1 - e^-2|x|) / (1 + e^-2|x|): {_TINY}",
        lambda x: np.copysign((1 - np.exp(-2 * np.abs(x))) / (1 + np.exp(-2 * np.abs(x))), x),
    ),
    Form("Tanh", f"tanh by 2 / (1 + e^-2x) - 1: {_TINY}", lambda x: 2 / (1 + np.exp(-2 * x)) - 1),
    Form("Tanh", f"tanh by {_RATIONAL}", _rational(_TANH, np.tanh)),
    Form("Atanh", f"atanh by log((1 + x) / (1 - x)) / 2: {_TINY}", lambda x: np.log((1 + x) / (1 - x)) / 2),
    Form("Atanh", f"atanh by (log(1 + x) - log(1 - x)) / 2: {_TINY}", lambda x: (np.log(1 + x) - np.log(1 - x)) / 2),
    Form(
        "Asinh",
        "asinh by log(x + sqrt(x^2 + 1)): loses its digits for tiny and for negative x",
        lambda x: np.log(x + np.sqrt(x * x + 1)),
    ),
    Form(
        "Asinh",
        f"asinh by log(|x| + sqrt(x^2 + 1)) with the sign of x: {_TINY}",
        lambda x: np.copysign(np.log(np.abs(x) + np.sqrt(x * x + 1)), x),
    ),
    Form(
        "Acosh",
        "acosh by log(x + sqrt(x^2 - 1)): loses its digits near 1, infinite where x^2 is",
        lambda x: np.log(x + np.sqrt(x * x - 1)),
    ),
    Form(
        "Acosh",
        "acosh with x^2 on the way: infinite from 1.8e19 on",
        lambda x: np.where(np.isinf(x * x), np.inf, np.arccosh(x)),
    ),
    Form("Acos", "acos by pi/2 - asin(x): loses its digits near 1", lambda x: typed(np.pi / 2, x) - np.arcsin(x)),
    Form("Acos", "acos by sqrt(1 - x^2): loses digits near 1", lambda x: np.arctan2(np.sqrt(1 - x * x), x)),
    Form("Asin", "asin by sqrt(1 - x^2): loses digits near 1", lambda x: np.arctan2(x, np.sqrt(1 - x * x))),
    Form("Elu", "e^x - 1: loses its digits for tiny negative x", lambda x: np.where(x < 0, np.exp(x) - 1, x)),
    Form(
        "Celu",
        "e^x - 1: loses its digits for tiny negative x",
        lambda x: np.where(x < 0, typed(1.5, x) * (np.exp(x / typed(1.5, x)) - 1), x),
    ),
    Form(
        "Selu",
        "e^x - 1: loses its digits for tiny negative x",
        lambda x: typed(1.050701, x) * np.where(x < 0, typed(1.6732632, x) * (np.exp(x) - 1), x),
    ),
    Form("Erf", f"erf by {_RATIONAL}", _rational(_ERF, special.erf)),
    Form("Erf", f"erf by 1 - p(t) e^-x^2 (Abramowitz and Stegun 7.1.26): {_TINY}", pieces.erf_1964),
    Form(
        "Gelu",
        "x (1 + erf(x/sqrt 2)) / 2: 1 + erf loses its digits below -2",
        lambda x: x / 2 * (1 + special.erf(x / typed(2**0.5, x))),
    ),
    Form(
        "Gelu",
        "x (1 + erf) / 2 with erf by 1 - p(t) e^-x^2 (Abramowitz and Stegun 7.1.26): loses its digits below -2",
        lambda x: x / 2 * (1 + pieces.erf_1964(x / typed(2**0.5, x))),
    ),
    Form(
        "Gelu",
        "x erfc(-x/sqrt 2) / 2: the rounding of the argument counts x^2 times",
        lambda x: x / 2 * special.erfc(-x * typed(0.5**0.5, x)),
    ),
    Form(
        "Gelu (tanh)",
        "x (1 + tanh u) / 2: 1 + tanh loses its digits below -2",
        lambda x: x / 2 * (1 + np.tanh(_gelu_inner(x))),
    ),
    Form(
        "Gelu (tanh)",
        "x sigmoid(2u), sigmoid by a rational function + 1/2: loses its digits below -2",
        lambda x: x * pieces.sigmoid_rational(2 * _gelu_inner(x)),
    ),
    Form("Exp", f"e^x by 2^n p(x - n log 2) with log 2 in one constant: {_GROWS}", pieces.exp_one_constant),
    Form(
        "Exp",
        "e^x with 2^n made of its bits, n up to 128: infinite from 88.4 on",
        lambda x: np.where(x > 127.5 * LOG_2, np.inf, np.exp(x)),
    ),
    Form("Exp", f"e^x by 2^(x / log 2), the exponent rounded: {_GROWS}", lambda x: np.exp2(x * typed(1 / LOG_2, x))),
    Form("2 to the x", f"e^(x log 2), the exponent rounded: {_GROWS}", lambda x, two: np.exp(x * np.log(two))),
    Form("Log", "log with a mantissa between 1 and 2: loses its digits just below 1", pieces.log_upwards),
    Form("Sinh", f"sinh by (e^x - e^-x) / 2: {_TINY}", _sinh),
    Form(
        "Sinh",
        "sinh by (e^|x| - e^-|x|) / 2 above 1: infinite from 88.8 on",
        lambda x: np.where(np.abs(x) < 1, np.sinh(x), _sinh(x)),
    ),
    Form("Sinh", f"sinh by e^(x - log 2) - e^(-x - log 2): {_GROWS}, and it {_TINY}", _sinh_shifted),
    Form(
        "Sinh",
        f"sinh by e^(x - log 2) above 1: {_GROWS}",
        lambda x: np.where(np.abs(x) < 1, np.sinh(x), _sinh_shifted(x)),
    ),
    Form("Cosh", "cosh by (e^x + e^-x) / 2: infinite from 88.8 on", lambda x: (np.exp(x) + np.exp(-x)) / 2),
    Form(
        "Cosh",
        f"cosh by e^(x - log 2) + e^(-x - log 2): {_GROWS}",
        lambda x: np.exp(x - typed(LOG_2, x)) + np.exp(-x - typed(LOG_2, x)),
    ),
    Form("Sin", f"sin with 2 pi in one constant: {_GROWS}", pieces.turned(np.sin)),
    Form("Cos", f"cos with 2 pi in one constant: {_GROWS}", pieces.turned(np.cos)),
    Form("Tan", f"tan with 2 pi in one constant: {_GROWS}", pieces.turned(np.tan)),
    Form(
        "HardSwish",
        "x min(max(x + 3, 0), 6) / 6: infinite where 6x is",
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
    ),
    *(Form("Sigmoid", words, compute) for words, compute in _SIGMOID),
    *(Form("Silu", f"x times {words}", lambda x, own=own: x * own(x)) for words, own in _SIGMOID),
    Form("Silu", "x times sigmoid with subnormal values, whose last digits are missing", lambda x: x * sigmoid(x)),
    *(Form("Softplus", words, compute) for words, compute in _SOFTPLUS[:2]),
    *(Form("LogSigmoid", f"minus {words}", lambda x, own=own: -own(-x)) for words, own in _SOFTPLUS[:2]),
    *(Form("Mish", f"x tanh of {words}", lambda x, own=own: x * np.tanh(own(x))) for words, own in _SOFTPLUS),
    Form(
        "Mish",
        "x tanh(softplus x), the rational function of tanh with a subnormal last product",
        lambda x: x * _rational(_TANH, np.tanh)(softplus(x)),
    ),
    Form("Mean", "(a + b) / 2: infinite where a + b is", lambda a, b: (a + b) / 2),
    Form("Div", "a (1/b): 1/b is 0 or infinite before a/b is", lambda a, b: a * (1 / b)),
    Form("Pow", "e^(b log a): the error grows with |b log a|", pieces.power),
    Form("Pow 0.5, Pow 2, Pow 3", "e^(y log x): the error grows with |log x|", pieces.power),
    Form(
        "Mod (fmod)",
        "a - b trunc(a/b): loses its digits where a is many times b",
        lambda a, b: a - b * np.trunc(a / b),
    ),
    Form(
        "Mod (fmod)",
        "by the quotient: NaN where a/b is infinite",
        lambda a, b: np.where(np.isinf(a / b) & (b != 0), np.nan, np.fmod(a, b)),
    ),
)
