"""Elementwise functions and their likes, as ONNX defines them, to a few units in the last place of float64.

Formulas as they stand in ONNX lose digits even in float64: log(1 + e^x) of -40 is 0, e^x - 1 of 1e-17 as well, 1 +
erf(x) of -6. These here don't, anywhere; what's given as longdouble is computed in it (but for erf and gelu, which
scipy has in float64). Where an argument is rounded on its way into an exponential, longdouble carries it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import special

__all__ = ["FUNCTIONS", "PLAIN", "operators"]

Array = np.ndarray[Any, Any]
_SELU = (1.67326319217681884765625, 1.05070102214813232421875)
_ROOT_HALF = np.sqrt(np.longdouble(0.5))
_TANH_GELU = np.sqrt(np.longdouble(2) / np.longdouble("3.14159265358979323846264338327950288"))
_GELU_CUBE = np.longdouble("0.044715")


def _wide(x: Array) -> Array:
    return x.astype(np.longdouble)


def softplus(x: Array) -> Array:
    """log(1 + e^x)."""
    return np.array(-special.log_expit(-x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x); scipy's is zero where that's subnormal."""
    small = np.exp(np.minimum(x, 0))
    return np.asarray(np.where(x < 0, small / (1 + small), special.expit(x)))


def mish(x: Array) -> Array:
    """X tanh(softplus(x))."""
    return np.asarray(_wide(x) * np.tanh(softplus(_wide(x)))).astype(x.dtype)


def elu(x: Array, alpha: float = 1.0) -> Array:
    """X, or alpha (e^x - 1) below zero."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def selu(x: Array, alpha: float = _SELU[0], gamma: float = _SELU[1]) -> Array:
    """Elu, times gamma."""
    return np.asarray(gamma * elu(x, alpha))


def celu(x: Array, alpha: float = 1.0) -> Array:
    """X, or alpha (e^(x/alpha) - 1) below zero."""
    low = _wide(np.where(x > 0, 0, x))
    return np.where(x > 0, x, (alpha * np.expm1(low / alpha)).astype(x.dtype))


def gelu(x: Array, approximate: str = "none") -> Array:
    """X times the normal distribution's share below x, or its usual approximation by tanh."""
    if approximate == "tanh":
        wide = _wide(x)
        return np.asarray(wide * sigmoid(2 * _TANH_GELU * (wide + _GELU_CUBE * wide**3))).astype(x.dtype)
    root = (_wide(x) * _ROOT_HALF).astype(np.float64)
    tail = special.erfcx(np.maximum(-root, 0)) * np.exp(-(_wide(x) ** 2) / 2)  # erfc would square a rounded argument
    return np.asarray(x * np.where(x < -1, tail, special.erfc(-root)) / 2).astype(x.dtype)


def swish(x: Array, alpha: float = 1.0) -> Array:
    """X sigmoid(alpha x)."""
    return np.asarray(x * sigmoid(_wide(x) * alpha)).astype(x.dtype)


def hard_sigmoid(x: Array, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """Alpha x + beta, between 0 and 1."""
    return np.clip(_wide(x) * alpha + beta, 0, 1).astype(x.dtype)


def hard_swish(x: Array) -> Array:
    """X times x + 3 between 0 and 6, by 6: x + 3 is exact where it's near zero, x / 6 + 0.5 isn't."""
    return np.asarray(x * np.clip(x + 3, 0, 6) / 6)


def softsign(x: Array) -> Array:
    """X / (1 + |x|)."""
    return np.asarray(x / (1 + np.abs(x)))


def shrink(x: Array, bias: float = 0.0, lambd: float = 0.5) -> Array:
    """X nearer to zero by the bias, or zero within lambd; of x's type."""
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0 * x)).astype(x.dtype)


def _shifted(x: Array, axis: int | tuple[int, ...] | None) -> tuple[Array, Array, Array]:
    """X less its largest, that one, and the sum of all e^(x - largest) without the largest one's own."""
    peak = x.max(axis=axis, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0)
    low = x - peak
    others = np.where(low == 0, 0, np.exp(low)).sum(axis=axis, keepdims=True)
    return low, peak, others + ((low == 0).sum(axis=axis, keepdims=True) - 1)


def softmax(x: Array, axis: int = -1) -> Array:
    """e^x, by the sum of all e^x along an axis."""
    low, _, rest = _shifted(_wide(x), axis)
    return np.asarray(np.exp(low) / (1 + rest)).astype(x.dtype)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """The logarithm of softmax, where that is 1 but for some digits, too."""
    low, _, rest = _shifted(_wide(x), axis)
    return np.asarray(low - np.log1p(rest)).astype(x.dtype)


def log_sum_exp(x: Array, axis: tuple[int, ...] | None = None, *, keepdims: bool = True) -> Array:
    """The logarithm of the sum of all e^x along axes."""
    _, shift, rest = _shifted(_wide(x), axis)
    found = (shift + np.log1p(rest)).astype(x.dtype)
    return np.asarray(found if keepdims else np.squeeze(found, axis))


def thresholded_relu(x: Array, alpha: float = 1.0) -> Array:
    """X where it's above alpha, else zero."""
    return np.where(x > alpha, x, 0 * x)


def leaky_relu(x: Array, alpha: float = 0.01) -> Array:
    """X, or alpha x below zero."""
    return np.where(x < 0, alpha * x, x)


_NAMED = (softplus, mish, elu, selu, celu, gelu, swish, sigmoid, softmax, softsign, shrink, hard_sigmoid)
_MORE = (hard_swish, log_softmax, leaky_relu, thresholded_relu)
_NUMPY = (np.exp, np.sqrt, np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.reciprocal, np.log)
_INVERSE = (np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh)
FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    **{function.__name__.title().replace("_", ""): function for function in (*_NAMED, *_MORE, *_NUMPY)},
    **{f"A{function.__name__.removeprefix('arc')}": function for function in _INVERSE},
    "Erf": special.erf,
}
"""By ONNX's operator: of an array, and the operator's attributes by name; NaN and infinities as the limits are."""
PLAIN: Mapping[str, Callable[[Array], Array]] = {
    **{name: getattr(np, name.lower()) for name in ("Abs", "Ceil", "Floor", "Sign")},
    "Identity": np.positive,
    "Neg": np.negative,
    "Relu": lambda x: np.maximum(x, 0),
    "Round": np.rint,
}
"""The same of those that round nothing and have no attributes."""
_ROWS = {"Softmax", "LogSoftmax"}


def operators() -> list[type]:
    """These functions as `ReferenceEvaluator(new_ops=...)` takes them."""
    from onnx.reference.op_run import OpRun

    def made(name: str, function: Callable[..., Array]) -> type:
        def run(self: Any, x: Array, **attributes: Any) -> tuple[Array]:
            given = {key: value for key, value in attributes.items() if value is not None}
            with np.errstate(all="ignore"):
                if name in _ROWS and self.run_params["opsets"].get("", 13) < 13:
                    return (_of_rows(function, x, self.onnx_node),)
                return (np.asarray(function(x, **given)),)

        return type(name, (OpRun,), {"op_domain": "", "_run": run})

    return [made(name, function) for name, function in FUNCTIONS.items()]


def _of_rows(function: Callable[..., Array], x: Array, node: Any) -> Array:
    """As before opset 13: all axes from one on are a row."""
    axis = next((item.i for item in node.attribute if item.name == "axis"), 1) % max(x.ndim, 1)
    rows = x.reshape(int(np.prod(x.shape[:axis])), -1)
    return np.asarray(function(rows, axis=1).reshape(x.shape))
