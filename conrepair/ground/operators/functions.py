"""Functions of one number, as ONNX defines them, to a few units in the last place of float64.

Formulas as they stand in ONNX lose digits even in float64: log(1 + e^x) of -40 is 0, e^x - 1 of 1e-17 as well, 1 +
erf(x) of -6. These here don't, anywhere; what's given as longdouble is computed in it (but for erf and gelu, which
scipy has in float64). Where an argument is rounded on its way into an exponential, longdouble carries it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conrepair.ground.operators.record import STEP, Array, Function, Operator

_SELU = (1.67326319217681884765625, 1.05070102214813232421875)
_ROOT_HALF = np.sqrt(np.longdouble(0.5))
_TANH_GELU = np.sqrt(np.longdouble(2) / np.longdouble("3.14159265358979323846264338327950288"))
_GELU_CUBE = np.longdouble("0.044715")
_RECTIFIER, _SIGMOID = "function.rectifier", "function.sigmoid"


def erf(x: Array) -> Array:
    """The error function, in float64; SciPy takes a tenth of a second to load."""
    from scipy import special

    return np.asarray(special.erf(x.astype(np.float64))).astype(x.dtype)


def _wide(x: Array) -> Array:
    return x.astype(np.longdouble)


def softplus(x: Array) -> Array:
    """log(1 + e^x)."""
    return np.asarray(np.logaddexp(x, 0))


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x)."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


def mish(x: Array) -> Array:
    """X tanh(softplus(x))."""
    return np.asarray(_wide(x) * np.tanh(softplus(_wide(x)))).astype(x.dtype)


def elu(x: Array, *, alpha: float = 1.0) -> Array:
    """X, or alpha (e^x - 1) below zero."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def selu(x: Array, *, alpha: float = _SELU[0], gamma: float = _SELU[1]) -> Array:
    """Elu, times gamma."""
    return np.asarray(gamma * elu(x, alpha=alpha))


def celu(x: Array, *, alpha: float = 1.0) -> Array:
    """X, or alpha (e^(x/alpha) - 1) below zero."""
    low = _wide(np.where(x > 0, 0, x))
    return np.where(x > 0, x, (alpha * np.expm1(low / alpha)).astype(x.dtype))


def gelu(x: Array, *, approximate: str = "none") -> Array:
    """X times the normal distribution's share below x, or its usual approximation by tanh."""
    if approximate == "tanh":
        wide = _wide(x)
        return np.asarray(wide * sigmoid(2 * _TANH_GELU * (wide + _GELU_CUBE * wide**3))).astype(x.dtype)
    root = (_wide(x) * _ROOT_HALF).astype(np.float64)
    from scipy import special

    tail = special.erfcx(np.maximum(-root, 0)) * np.exp(-(_wide(x) ** 2) / 2)  # erfc would square a rounded argument
    return np.asarray(x * np.where(x < -1, tail, special.erfc(-root)) / 2).astype(x.dtype)


def swish(x: Array, *, alpha: float = 1.0) -> Array:
    """X sigmoid(alpha x)."""
    return np.asarray(x * sigmoid(_wide(x) * alpha)).astype(x.dtype)


def hard_sigmoid(x: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """Alpha x + beta, between 0 and 1."""
    return np.clip(_wide(x) * alpha + beta, 0, 1).astype(x.dtype)


def hard_swish(x: Array) -> Array:
    """X times x + 3 between 0 and 6, by 6: x + 3 is exact where it's near zero, x / 6 + 0.5 isn't."""
    return np.asarray(x * (np.clip(x + 3, 0, 6) / 6))


def softsign(x: Array) -> Array:
    """X / (1 + |x|)."""
    return np.asarray(x / (1 + np.abs(x)))


def shrink(x: Array, *, lambd: float = 0.5, bias: float = 0.0) -> Array:
    """X nearer to zero by the bias, or zero within lambd; of x's type."""
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0 * x)).astype(x.dtype)


def thresholded_relu(x: Array, *, alpha: float = 1.0) -> Array:
    """X where it's above alpha, else zero: of what is no number, too."""
    return np.where(x > alpha, x, 0)


def leaky_relu(x: Array, *, alpha: float = 0.01) -> Array:
    """X, or alpha x below zero."""
    return np.where(x < 0, alpha * x, x)


# Derivatives that are no one line.


def _elu_slope(x: Array, alpha: float) -> Array:
    return np.where(x > 0, 1, alpha * np.exp(np.minimum(x, 0)))


def _gelu_slope(x: Array, approximate: str) -> Array:
    if approximate == "tanh":
        share = sigmoid(2 * _TANH_GELU * (x + _GELU_CUBE * x**3))
        return np.asarray(share + x * share * (1 - share) * 2 * _TANH_GELU * (1 + 3 * _GELU_CUBE * x * x))
    return np.asarray((1 + erf(x * _ROOT_HALF)) / 2 + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))


def _mish_slope(x: Array) -> Array:
    share = np.tanh(softplus(x))
    return np.asarray(share + x * (1 - share * share) * sigmoid(x))


def _swish_slope(x: Array, alpha: float) -> Array:
    share = sigmoid(alpha * x)
    return np.asarray(share + alpha * x * share * (1 - share))


def _beyond(x: Array, alpha: float = np.inf, lambd: float = np.inf, bias: float = 0.0) -> Array:
    return ((x > alpha) | (np.abs(x) > lambd)) * 1.0


def _clip(x: Array, low: Any = -np.inf, high: Any = np.inf, **bounds: float) -> Array:
    return np.clip(x, bounds.get("min", low), bounds.get("max", high))


def _clip_slope(x: Array, **bounds: float) -> Array:
    return np.asarray(_clip(x, **bounds) == x, x.dtype)


def _line_terms(x: Array, alpha: float, beta: float) -> Array:
    """Of a line that is held between 0 and 1, and cancels where it's near 0."""
    return np.where(np.abs(alpha * x + beta - 0.5) < 0.5, np.abs(alpha * x) + np.abs(beta), 0)


def _function(
    value: Function, derivative: Function | str, family: str = "", turns: Any = (), **traits: Any
) -> Operator:
    """Of one number; its attributes are those of its value in NumPy."""
    attributes = dict(getattr(value, "__kwdefaults__", None) or {})
    return Operator(value, derivative, {}, attributes, family, 1, turns, **traits)


FUNCTIONS: Mapping[str, Operator] = {
    "Relu": _function(lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, _RECTIFIER, exact=True),
    "LeakyRelu": _function(leaky_relu, lambda x, alpha: np.where(x < 0, alpha, 1), _RECTIFIER, (0.0,)),
    "Elu": _function(elu, _elu_slope, _RECTIFIER, (0.0,)),
    "Selu": _function(selu, lambda x, alpha, gamma: gamma * _elu_slope(x, alpha), _RECTIFIER, (0.0,)),
    "Celu": _function(celu, lambda x, alpha: np.where(x > 0, 1, np.exp(x / alpha)), _RECTIFIER, (0.0,)),
    "ThresholdedRelu": _function(thresholded_relu, _beyond, _RECTIFIER, lambda alpha: [alpha]),
    "Shrink": _function(shrink, _beyond, _RECTIFIER, lambda lambd, **_: [-lambd, lambd]),
    "Gelu": _function(gelu, _gelu_slope, _RECTIFIER, (-0.7517916243924, -0.7524614220711)),
    "Swish": _function(swish, _swish_slope, _RECTIFIER, lambda alpha: [-1.2784645427611 / alpha if alpha else 0.0]),
    "HardSwish": _function(
        *(hard_swish, lambda x: np.where(np.abs(x) < 3, x / 3 + 0.5, (x > 0) * 1.0), _RECTIFIER, (-1.5,)),
        terms=lambda x: np.abs(x) * _line_terms(x, 1 / 6, 0.5),
    ),
    "Mish": _function(mish, _mish_slope, _RECTIFIER, (-1.1924312145084,)),
    "Clip": Operator(_clip, _clip_slope, {}, {"min": None, "max": None}, _RECTIFIER, 1, (), exact=True),
    "Sigmoid": _function(sigmoid, lambda x: sigmoid(x) * sigmoid(-x), _SIGMOID),
    "HardSigmoid": _function(
        *(hard_sigmoid, lambda x, alpha, beta: alpha * (np.abs(alpha * x + beta - 0.5) < 0.5), _SIGMOID),
        terms=_line_terms,
    ),
    "Tanh": _function(np.tanh, lambda x: 4 * sigmoid(2 * x) * sigmoid(-2 * x), _SIGMOID),
    "Softplus": _function(softplus, sigmoid, _SIGMOID),
    "Softsign": _function(softsign, lambda x: 1 / (1 + np.abs(x)) ** 2, _SIGMOID),
    "Erf": _function(erf, lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x), _SIGMOID),
    "Exp": _function(np.exp, np.exp, _SIGMOID),
    "Expm1": _function(np.expm1, np.exp),
    "Log": _function(np.log, np.reciprocal, domain=(1e-4, np.inf)),
    "Log1p": _function(np.log1p, lambda x: 1 / (1 + x)),
    "Sqrt": _function(np.sqrt, lambda x: 0.5 / np.sqrt(x), domain=(0.0, np.inf)),
    "Rsqrt": _function(lambda x: 1 / np.sqrt(x), lambda x: -0.5 / (x * np.sqrt(x))),
    "Square": _function(np.square, lambda x: 2 * x, turns=(0.0,)),
    "Reciprocal": _function(np.reciprocal, lambda x: -1 / (x * x), turns=None),
    "Sin": _function(np.sin, np.cos, turns=None),
    "Cos": _function(np.cos, lambda x: -np.sin(x), turns=None),
    "Neg": _function(np.negative, lambda x: -np.ones_like(x), exact=True),
    "Abs": _function(np.abs, np.sign, turns=(0.0,), exact=True),
    "Identity": _function(np.positive, np.ones_like, "move", None, exact=True),
    "Sign": _function(np.sign, STEP, exact=True),
    "Floor": _function(np.floor, STEP, exact=True),
    "Ceil": _function(np.ceil, STEP, exact=True),
    "Round": _function(np.rint, STEP, exact=True),
    "Not": _function(np.logical_not, "of truth values", turns=None, exact=True, logical=True),
    "Tan": _function(np.tan, lambda x: 1 + np.tan(x) ** 2, turns=None),
    "Sinh": _function(np.sinh, np.cosh),
    "Cosh": _function(np.cosh, np.sinh, turns=(0.0,)),
    "Asin": _function(np.arcsin, lambda x: 1 / np.sqrt(1 - x * x), domain=(-1.0, 1.0)),
    "Acos": _function(np.arccos, lambda x: -1 / np.sqrt(1 - x * x), domain=(-1.0, 1.0)),
    "Atan": _function(np.arctan, lambda x: 1 / (1 + x * x)),
    "Asinh": _function(np.arcsinh, lambda x: 1 / np.sqrt(x * x + 1)),
    "Acosh": _function(np.arccosh, lambda x: 1 / np.sqrt(x * x - 1), domain=(1.0, np.inf)),
    "Atanh": _function(np.arctanh, lambda x: 1 / (1 - x * x), domain=(-0.999, 0.999)),
}
"""By name; NaN and infinities as the limits are."""
