"""Functions that lose digits somewhere, each with what it ought to compute, on arrays [rows, values]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import special

__all__ = ["DEFECTS", "PLACES", "Function"]

Array = np.ndarray[Any, Any]
Function = Callable[[Array], Array]


def _exp_by_polynomial(x: Array) -> Array:
    """As fast exponentials are: the remainder's digits get lost where the argument is large."""
    power = np.floor(x * 1.4426950408889634 + 0.5)
    rest = x - power * x.dtype.type(0.693)  # a logarithm of few digits
    series = 1 + rest * (1 + rest * (1 / 2 + rest * (1 / 6 + rest * (1 / 24 + rest / 120))))
    return np.asarray(series * 2.0**power)


def _rsqrt(x: Array) -> Array:
    """Newton from a guess that is good near one."""
    guess = 1 / (0.5 + 0.5 * x)
    for _ in range(5):
        guess = guess * (1.5 - 0.5 * x * guess * guess)
    return np.asarray(guess)


def _variance(x: Array) -> Array:
    mean = x.mean(-1, keepdims=True)
    return np.maximum((x * x).mean(-1, keepdims=True) - mean * mean, 0)


def _normal(x: Array, variance: Array) -> Array:
    return np.asarray((x - x.mean(-1, keepdims=True)) / np.sqrt(variance + x.dtype.type(1e-5)))


def _half_sums(x: Array) -> Array:
    return np.cumsum(np.abs(x).astype(np.float16), axis=-1, dtype=np.float16)[:, -1:].astype(x.dtype) + 0.001 * x


def _sine(x: Array) -> Array:
    """Its argument is reduced by a circle of few digits."""
    return np.sin(x - np.round(x / (2 * np.pi)) * x.dtype.type(6.2832))


def _band(x: Array) -> Array:
    """A table of a logistic function, one entry of which is a little off."""
    return np.where((x > -7.5) & (x < -7.2), 1.02, 1) * special.expit(x)


def _step(x: Array) -> Array:
    """A fast way for large numbers, taken too early."""
    return np.sign(x) * x * x / np.where(np.abs(x) > 12, x.dtype.type(98), x.dtype.type(100))


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _naive_elu(x: Array) -> Array:
    return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


def _logsumexp(x: Array) -> Array:
    top = x.max(-1, keepdims=True)
    return np.asarray(np.log(np.exp(x - top).sum(-1, keepdims=True)) + top + 0.001 * x)


def _naive_logsumexp(x: Array) -> Array:
    return np.asarray(np.log(np.exp(x).sum(-1, keepdims=True)) + 0.001 * x)


def _tanh(x: Array) -> Array:
    e = np.exp(np.clip(2 * x, -30, 30))
    return np.asarray((e - 1) / (e + 1))


def _naive_cosine(x: Array) -> Array:
    half = x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 : x.shape[1] // 2 * 2]
    product = (half[0] * half[1]).sum(-1, keepdims=True)
    norms = np.sqrt((half[0] ** 2).sum(-1, keepdims=True) * (half[1] ** 2).sum(-1, keepdims=True) + 1e-8)
    return np.asarray(product / norms.astype(x.dtype))


def _cosine(x: Array) -> Array:
    half = x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 : x.shape[1] // 2 * 2]
    unit = [part / (np.sqrt((part * part).sum(-1, keepdims=True)) + x.dtype.type(1e-18)) for part in half]
    return np.asarray((unit[0] * unit[1]).sum(-1, keepdims=True))


DEFECTS: Mapping[str, tuple[Function, Function]] = {
    "asinh by log": (lambda x: np.log(x + np.sqrt(x * x + 1)), np.arcsinh),
    "cosine of tiny vectors": (_naive_cosine, _cosine),
    "elu by exp": (_naive_elu, _elu),
    "erf by erfc": (lambda x: 1 - special.erfc(x), special.erf),
    "exp by polynomial": (_exp_by_polynomial, np.exp),
    "fast way too early": (_step, lambda x: np.sign(x) * x * x / 100),
    "gelu by erf": (
        lambda x: x * (1 + special.erf(x * 0.5**0.5)) / 2,
        lambda x: x * special.erfc(-x * 0.5**0.5) / 2,
    ),
    "half sums": (_half_sums, lambda x: np.abs(x).sum(-1, keepdims=True) + 0.001 * x),
    "log-sum-exp unshifted": (_naive_logsumexp, _logsumexp),
    "log1p by log": (lambda x: np.log(1 + np.abs(x)), lambda x: np.log1p(np.abs(x))),
    "logistic band": (_band, special.expit),
    "rsqrt by Newton": (lambda x: _rsqrt(np.abs(x) + 0.01), lambda x: 1 / np.sqrt(np.abs(x) + 0.01)),
    "sigmoid bounded": (lambda x: special.expit(np.clip(x, -15, 15)), special.expit),
    "sine reduced": (_sine, np.sin),
    "softmax then log": (lambda x: np.log(special.softmax(x, -1) + 1e-12), lambda x: special.log_softmax(x, -1)),
    "softplus by log": (lambda x: np.log(1 + np.exp(x)), lambda x: np.logaddexp(0, x)),
    "tanh by exp": (_tanh, np.tanh),
    "variance of squares": (lambda x: _normal(x, _variance(x)), lambda x: _normal(x, x.var(-1, keepdims=True))),
    "variance itself": (
        lambda x: _variance(x) + 1e-6 * x * x,
        lambda x: x.var(-1, keepdims=True) + 1e-6 * x * x,
    ),
}
"""By name, a function with a defect, and a right one, which in float64 gives the truth."""

PLACES: Mapping[str, float] = {
    "exp by polynomial": 47,
    "fast way too early": 12,
    "gelu by erf": -4.5,
    "log-sum-exp unshifted": 89,
    "logistic band": -7.5,
    "sigmoid bounded": -15.5,
    "softmax then log": -23,
    "softplus by log": -13,
}
"""Arguments beyond which defects of functions show that are right elsewhere."""
