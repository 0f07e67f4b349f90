"""Operators in terms of simpler ones.

`x` is what an operator reads; other names are its attributes and parameters, as `conrepair.ground.graph.operators`
has them. What is computed of those alone is a constant. Numbers stand on the right where the order doesn't matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from conrepair.ground.equations.expression import horner

_ERF_ONE = 3.7439211627767994  # where the error function is 1 in float32
_ERF_ABOVE = (
    1.128379143519084,
    0.18520832239976145,
    0.050955695062380861,
    0.0034082910107109506,
    0.00022905065861350646,
)
_ERF_BELOW = (
    *(1.0, 0.49746925110067538, 0.11098505178285362),
    *(0.014070470171167667, 0.0010179625278914885, 0.000023547966471313185, -1.1791602954361697e-7),
)
_NORMALIZED = "d = x - ReduceMean(x); d / Sqrt(ReduceMean(d * d) + epsilon) * scale + bias"

# 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)), as x (1 + 0.044715 x^2).
TANH_GELU = f"x * (Tanh(x * (x * x * 0.044715 + 1) * {math.sqrt(2 / math.pi)!r}) + 1) * 0.5"
"""Of `Gelu` where its attribute `approximate` is "tanh"."""

SOFT_SHRINK = "x - Clip(x, -lambd, lambd)"
"""Of `Shrink` where `bias` is `lambd`."""

EQUATIONS: Mapping[str, str] = {
    "BatchNormalization": "f = scale / Sqrt(variance + epsilon); x * f + (bias - mean * f)",
    "LayerNormalization": _NORMALIZED,
    "InstanceNormalization": _NORMALIZED,
    "Clip": "Min(Max(x, min), max)",
    "DequantizeLinear": "x * scale",
    "Elu": "(Exp(Min(x, 0)) - 1) * alpha + Max(x, 0)",
    # The quotient of polynomials by which XLA computes it of float32 (`RewriteErf32Pattern`): within 4e-7.
    "Erf": (
        f"c = Clip(x, {-_ERF_ONE!r}, {_ERF_ONE!r}); q = c * c; "
        f"c * ({horner('q', _ERF_ABOVE)}) / ({horner('q', _ERF_BELOW)})"
    ),
    "Gelu": f"x * (Erf(x * {math.sqrt(0.5)!r}) + 1) * 0.5",
    "HardSigmoid": "Clip(x * alpha + beta, 0, 1)",
    "HardSwish": f"x * HardSigmoid(x, alpha={1 / 6!r}, beta=0.5)",
    "LeakyRelu": "Min(x, 0) * alpha + Max(x, 0)",
    "LogSoftmax": "Log(Softmax(x, **attributes))",
    "Mish": "x * Tanh(Softplus(x))",
    "Neg": "x * -1",
    "PRelu": "Min(x, 0) * slope + Max(x, 0)",
    # Rounded to int8's numbers, which stay real ones; for formats without such a type.
    "QuantizeLinear": "Clip(Round(x * (1 / scale)), -128, 127)",
    "Reciprocal": "1 / x",
    "Relu": "Max(x, 0)",
    "Rsqrt": "Reciprocal(Sqrt(x))",
    "Selu": "Elu(x, alpha=alpha) * gamma",
    "Shrink": "(x - Sign(x) * bias) * Clip(Sign(Abs(x) - lambd), 0, 1)",
    "Softplus": "Log(Exp(Abs(x) * -1) + 1) + Max(x, 0)",  # doesn't overflow
    "Softsign": "x / (Abs(x) + 1)",
    "Square": "x * x",
    "Swish": "x * Sigmoid(x * alpha)",
}
"""By operator."""

_TANH_ROOT, _TANH_CUBE = repr(math.sqrt(2 / math.pi)), repr(math.sqrt(2 / math.pi) * 0.044715)
_NORMAL = {  # what is near -1 on the left and near 1 on the right, by the operator that it makes
    "Gelu(x)": (f"Erf(x * {math.sqrt(0.5)!r})",),
    'Gelu(x, approximate="tanh")': (
        f"Tanh((x * x * x * 0.044715 + x) * {_TANH_ROOT})",
        f"Tanh(x * (x * x * 0.044715 + 1) * {_TANH_ROOT})",
        f"Tanh(x * x * x * {_TANH_CUBE} + x * {_TANH_ROOT})",
    ),
}
_HALVED = ("x * ({} + 1) * 0.5", "x * ({} * 0.5 + 0.5)", "x * {} * 0.5 + x * 0.5", "(x * {} + x) * 0.5")

OTHERS: tuple[tuple[str, str], ...] = (
    ("Abs(x)", "Max(x, -x)"),
    ("Celu(x, alpha=alpha)", "Max(x, 0) + Min((Exp(x / alpha) - 1) * alpha, 0)"),
    *((call, way.format(inner)) for call, found in _NORMAL.items() for inner in found for way in _HALVED),
    ("HardSwish(x)", "x * Clip(x + 3, 0, 6) / 6"),
    ("HardSwish(x)", "x * (Clip(x + 3, 0, 6) / 6)"),
    ("LayerNormalization(x, scale, bias, axis=axis, epsilon=epsilon)", _NORMALIZED),
    ("LayerNormalization(x, scale, axis=axis, epsilon=epsilon)", _NORMALIZED.removesuffix(" + bias")),
    ("PRelu(x, slope)", "Relu(x) + Relu(-x) * -slope"),
    ("Shrink(x, lambd=lambd, bias=0.0)", "Where(Abs(x) > lambd, x, 0)"),
    ("LpNormalization(x, axis=axis)", "x / Sqrt(ReduceSum(x * x))"),
    ("ReduceL1(x)", "ReduceSum(Abs(x))"),
    ("ReduceL2(x)", "Sqrt(ReduceSum(x * x))"),
    ("ReduceLogSum(x)", "Log(ReduceSum(x))"),
    ("ReduceSumSquare(x)", "ReduceSum(x * x)"),
    ("Sigmoid(x)", "1 / (Exp(-x) + 1)"),
    ("Softmax(x, axis=axis)", "e = Exp(x - ReduceMax(x)); e / ReduceSum(e)"),
    ("Tanh(x)", "(Exp(x + x) - 1) / (Exp(x + x) + 1)"),
    ("ThresholdedRelu(x, alpha=alpha)", "Where(x > alpha, x, 0)"),
)
"""Calls of ONNX's operators, and how graphs have them written out: one operator in one or several ways."""
