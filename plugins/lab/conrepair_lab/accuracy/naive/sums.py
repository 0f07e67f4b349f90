"""Unstable formulas of sums, normalizations and products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from conrepair.ground.operators.record import Array
from conrepair_lab.accuracy.naive.form import ADDED, ONE_BY_ONE, PIECES, Form, computing, forms_of

_BY_SQUARES = "the variance by E[x^2] - E[x]^2: loses its digits where the mean is larger than the spread"
_BARE = "e^x without the largest taken out: infinite from 89 on"
_PRODUCTS = "Conv, Conv 1x1, Conv by width, Conv depthwise, ConvTranspose, MatMul, MatMul of inputs, Gemm"
_OF_SQUARES = "m = ReduceMean(x); (x - m) / Sqrt(ReduceMean(x * x) - m * m + epsilon)"
_NORMALIZED: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    (_BY_SQUARES, "m = ReduceMean(x); (x - m) / Sqrt(Max(ReduceMean(x * x) - m * m, 0) + epsilon)", PIECES),
    (f"{_BY_SQUARES}, NaN where that's negative", _OF_SQUARES, PIECES),
    (f"{_BY_SQUARES}, NaN where that's negative", _OF_SQUARES, ONE_BY_ONE),
    (ADDED, "d = x - ReduceMean(x); d / Sqrt(ReduceMean(d * d) + epsilon)", ONE_BY_ONE),
)


def _normalizations(operator: str, groups: int = 1, epsilon: float = 1e-5) -> Iterator[Form]:
    """A normalization over the last axis of so many groups."""
    for words, text, functions in _NORMALIZED:
        unit = computing(text, functions, epsilon=epsilon)

        def compute(
            x: Array, scale: Array | float = 1.0, shift: Array | float = 0.0, unit: Callable[..., Any] = unit
        ) -> Any:
            if x.ndim > 2:  # factors are by channel
                scale, shift = np.reshape(scale, (-1, 1, 1)), np.reshape(shift, (-1, 1, 1))
            return unit(x.reshape(len(x), groups, -1)).reshape(x.shape) * scale + shift

        yield Form(operator, words, compute)


_TABLE = f"""
Softmax: {_BARE} := Exp(x) / ReduceSum(Exp(x))
Softmax: e^x by 2^n p(x - n log 2) with log 2 in one constant := e = FastExp(x - ReduceMax(x)); e / ReduceSum(e)
LogSoftmax: log(softmax(x)): infinite where the share is 0 := e = Exp(x - ReduceMax(x)); Log(e / ReduceSum(e))
LogSoftmax: {_BARE} := x - Log(ReduceSum(Exp(x)))
ReduceLogSumExp: {_BARE} := Log(ReduceSum(Exp(x)))
"""
_ADDED = f"""
CumSum: {ADDED} := CumSum(x)
ReduceProd: factors multiplied one after another := ReduceProd(x)
ReduceSum: {ADDED} := ReduceSum(x)
ReduceSum: sums in bfloat16 := InBfloat16(x)
ReduceMean: {ADDED} := ReduceMean(x)
LpNormalization (1): {ADDED} := x / ReduceSum(Abs(x))
GlobalAveragePool: {ADDED} := GlobalAveragePool(x)
"""
SUMS: tuple[Form, ...] = (
    *_normalizations("LayerNormalization"),
    *_normalizations("MeanVarianceNormalization", epsilon=0.0),
    *_normalizations("InstanceNormalization", 4),
    *_normalizations("GroupNormalization", 2),
    *forms_of(_TABLE),
    *forms_of(_ADDED, ONE_BY_ONE),
    Form(_PRODUCTS, "factors rounded to 10 bits (TF32)", None),
)
