"""Sums, normalizations and products, in forms that lose digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from conrepair.accuracy import scaled
from conrepair.accuracy.naive.form import Form
from conrepair.accuracy.naive.pieces import exp_one_constant
from conrepair.accuracy.scaled import Array

__all__ = ["SUMS"]

_BY_SQUARES = "the variance by E[x^2] - E[x]^2: loses its digits where the mean is larger than the spread"
_ONE_BY_ONE = "terms added one after another: the error grows with their number"
_BARE = "e^x without the largest taken out: infinite from 89 on"
_FAST = "e^x by 2^n p(x - n log 2) with log 2 in one constant"
_TF32 = "factors rounded to 10 bits (TF32)"


def _one_by_one(terms: Array) -> Any:
    return np.cumsum(terms, -1)[..., -1:]


def _mean_one_by_one(x: Array) -> Any:
    return _one_by_one(x) / x.shape[-1]


def _mean(x: Array) -> Any:
    return x.mean(-1, keepdims=True)


def _normalized(
    groups: int, within: float, mean_of: Callable[[Array], Any], variance_of: Callable[[Array, Array], Any]
) -> Callable[..., Any]:
    """A normalization over the last axis of so many groups, by other ways to a mean and a variance."""

    def compute(x: Array, scale: Array | float = 1.0, shift: Array | float = 0.0) -> Any:
        rows = x.reshape(len(x), groups, -1)
        mean = mean_of(rows)
        value = ((rows - mean) / np.sqrt(variance_of(rows, mean) + x.dtype.type(within))).reshape(x.shape)
        if x.ndim > 2:  # factors are by channel
            scale, shift = np.reshape(scale, (-1, 1, 1)), np.reshape(shift, (-1, 1, 1))
        return value * scale + shift

    return compute


def _normalizations(groups: int = 1, within: float = 1e-5) -> list[tuple[str, Callable[..., Any]]]:
    def by_squares(x: Array, mean: Array) -> Any:
        return _mean(x * x) - mean * mean

    def one_by_one(x: Array, mean: Array) -> Any:
        return _mean_one_by_one((x - mean) * (x - mean))

    return [
        (_BY_SQUARES, _normalized(groups, within, _mean, lambda x, mean: np.maximum(by_squares(x, mean), 0))),
        (f"{_BY_SQUARES}, NaN where that's negative", _normalized(groups, within, _mean, by_squares)),
        (
            f"{_BY_SQUARES}, NaN where that's negative",
            _normalized(groups, within, _mean_one_by_one, lambda x, mean: _mean_one_by_one(x * x) - mean * mean),
        ),
        (_ONE_BY_ONE, _normalized(groups, within, _mean_one_by_one, one_by_one)),
    ]


def _below_largest(x: Array) -> Any:
    return x - x.max(-1, keepdims=True)


def _shares(powers: Array) -> Any:
    return powers / powers.sum(-1, keepdims=True)


def _ten_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    """A product of factors of ten bits behind the first."""

    def rounded(x: Array) -> Any:
        mantissa, exponent = np.frexp(x.astype(np.float64))
        return np.ldexp(np.rint(mantissa * 2048) / 2048, exponent)

    return lambda *factors: np.asarray(function(*map(rounded, factors))).astype(factors[0].dtype)


SUMS: tuple[Form, ...] = (
    *(Form("LayerNormalization", words, compute) for words, compute in _normalizations()),
    *(Form("MeanVarianceNormalization", words, compute) for words, compute in _normalizations(within=0.0)),
    *(Form("InstanceNormalization", words, compute) for words, compute in _normalizations(4)),
    *(Form("GroupNormalization", words, compute) for words, compute in _normalizations(2)),
    Form("Softmax", _BARE, lambda x: _shares(np.exp(x))),
    Form("Softmax", _FAST, lambda x: _shares(exp_one_constant(_below_largest(x)))),
    Form("Softmax", _ONE_BY_ONE, lambda x: np.exp(_below_largest(x)) / _one_by_one(np.exp(_below_largest(x)))),
    Form(
        "LogSoftmax",
        "log(softmax(x)): infinite where the share is 0",
        lambda x: np.log(_shares(np.exp(_below_largest(x)))),
    ),
    Form("LogSoftmax", _BARE, lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True))),
    Form("ReduceLogSumExp", _BARE, lambda x: np.log(np.exp(x).sum(-1, keepdims=True))),
    Form("CumSum", _ONE_BY_ONE, lambda x: np.cumsum(x, -1)),
    Form("ReduceSum", _ONE_BY_ONE, _one_by_one),
    Form("ReduceSum", "sums in bfloat16", lambda x: _one_by_one(x.astype(ml_dtypes.bfloat16)).astype(x.dtype)),
    Form("ReduceMean", _ONE_BY_ONE, _mean_one_by_one),
    Form("ReduceL1", _ONE_BY_ONE, lambda x: _one_by_one(np.abs(x))),
    Form("ReduceL2", _ONE_BY_ONE, lambda x: np.sqrt(_one_by_one(x * x))),
    Form("ReduceSumSquare", _ONE_BY_ONE, lambda x: _one_by_one(x * x)),
    Form("ReduceLogSum", _ONE_BY_ONE, lambda x: np.log(_one_by_one(x))),
    Form("ReduceProd", "factors multiplied one after another", lambda x: np.cumprod(x, -1)[..., -1:]),
    Form("LpNormalization", _ONE_BY_ONE, lambda x: x / np.sqrt(_one_by_one(x * x))),
    Form("LpNormalization (1)", _ONE_BY_ONE, lambda x: x / _one_by_one(np.abs(x))),
    Form("GlobalAveragePool", _ONE_BY_ONE, lambda x: _mean_one_by_one(x.reshape(*x.shape[:2], -1))[..., None]),
    Form("Conv, Conv 1x1, Conv by width", _TF32, _ten_bits(lambda x, w: scaled.convolved(x, w))),
    Form("Conv depthwise", _TF32, _ten_bits(lambda x, w: scaled.convolved(x, w, len(w)))),
    Form("ConvTranspose", _TF32, _ten_bits(lambda x, w: scaled.convolved_back(x, w))),
    Form("MatMul", _TF32, _ten_bits(lambda x, w: x @ w)),
    Form("MatMul of inputs", _TF32, _ten_bits(lambda x: x @ x.T)),
    Form("Gemm", _TF32, _ten_bits(lambda x, w, b: x @ w + b)),
)
