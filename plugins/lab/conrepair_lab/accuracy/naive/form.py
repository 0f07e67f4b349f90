"""Unstable formulas of operators, and the approximations that they're written with, as expressions of `a`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from scipy import special

from conrepair.ground.equations.arrays import value_of
from conrepair.ground.equations.expression import horner
from conrepair.ground.operators.record import Array, Function

LOG_2 = math.log(2.0)
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
_TANH_LAST, _ERF_LAST = 4.89352455891786e-03, 1.60960333262415e-02
_ABOVE = (
    *(2.48287947061529e-01, 8.51377133304701e-03, 6.08574864600143e-05),
    *(1.15627324459942e-07, 4.37031012579801e-11),
)
_BELOW = (
    *(9.93151921023180e-01, 1.16817656904453e-01, 1.70198817374094e-03),
    *(6.29106785017040e-06, 5.76102136993427e-09, 6.10247389755681e-13),
)


def _log_upwards(x: Array) -> Any:
    """The sum of n log 2 and log m, where x = 2^n m."""
    half, exponent = np.frexp(x)
    return (exponent - 1).astype(x.dtype) * x.dtype.type(LOG_2) + np.log(2 * half)


def _one_by_one(x: Array) -> Any:
    return np.cumsum(x, -1)[..., -1:]


def _mean_one_by_one(x: Array) -> Any:
    return _one_by_one(x) / x.shape[-1]


def _power(x: Array, y: Array) -> Any:
    """By logarithms."""
    return np.exp(y * np.log(np.abs(x))) * np.where((x < 0) & (y % 2 == 1), -1, 1)


PIECES: Mapping[str, Function | str] = {
    "Atan2": np.arctan2,
    "Erfc": special.erfc,
    "Exp2": np.exp2,
    "Fmod": np.fmod,
    "IsInf": np.isinf,
    "Trunc": np.trunc,
    "LogUpwards": _log_upwards,
    "Power": _power,
    # 2^n e^r with r = x - n log 2, where log 2 is rounded once.
    "FastExp": f"h = Max(a, {-127.5 * LOG_2!r}); n = Floor(h / {LOG_2!r} + 0.5); Exp(h - n * {LOG_2!r}) * Exp2(n)",
    # Abramowitz and Stegun, 7.1.26.
    "Erf1964": (
        f"s = Abs(a); t = 1 / (1 + 0.3275911 * s); r = 1 - ({horner('t', _ERF)}) * t * Exp(-s * s); "
        "Where(a < 0, -r, r)"
    ),
    # A quotient of polynomials, and a half.
    "RationalSigmoid": (
        f"h = Min(Max(a, -18), 18); q = h * h; Max(h * ({horner('q', _ABOVE)}) / ({horner('q', _BELOW)}) + 0.5, 0)"
    ),
    # Right, but for the last product, which is smaller than x before it's divided.
    "RationalTanh": f"Where(Abs(a) < 1e-30, a * {_TANH_LAST} / {_TANH_LAST}, Tanh(a))",
    "RationalErf": f"Where(Abs(a) < 1e-30, a * {_ERF_LAST} / {_ERF_LAST / 2 * math.sqrt(math.pi)}, Erf(a))",
    "GeluInner": f"{math.sqrt(2 / math.pi)!r} * (a + 0.044715 * a * a * a)",
    # Behind whole turns taken away in the type of the angle.
    "Turned": f"a - Round(a / {2 * math.pi!r}) * {2 * math.pi!r}",
}
"""By name."""

ONE_BY_ONE: Mapping[str, Function | str] = {
    **PIECES,
    "ReduceSum": _one_by_one,
    "ReduceMean": _mean_one_by_one,
    "ReduceProd": lambda x: np.cumprod(x, -1)[..., -1:],
    "GlobalAveragePool": lambda x: _mean_one_by_one(x.reshape(*x.shape[:2], -1))[..., None],
    "InBfloat16": lambda x: _one_by_one(x.astype(ml_dtypes.bfloat16)).astype(x.dtype),
}
"""The same, with terms that are added one after another."""

ADDED = "terms added one after another: the error grows with their number"


@dataclass(frozen=True)
class Form:
    """An unstable formula that computes operators.

    Attributes:
        operators: Which, parted by commas.
        words: The form, and what it loses.
        compute: Of inputs and constants, in their element type; None where factors are rounded to ten bits behind
            the first before the operator is computed.
    """

    operators: str
    words: str
    compute: Callable[..., Any] | None


def computing(text: str, functions: Mapping[str, Function | str] = PIECES, /, **numbers: float) -> Callable[..., Any]:
    """A function that computes an expression of `x` (and `y`, and named numbers) in the type of `x`.

    Args:
        text: The expression.
        functions: What computes its operators, where that isn't what their records say.
        numbers: By its names.
    """

    def compute(*operands: Array) -> Array:
        return value_of(text, {**dict(zip("xy", operands, strict=False)), **numbers}, functions)

    return compute


def forms_of(table: str, functions: Mapping[str, Function | str] = PIECES) -> Iterator[Form]:
    """The formulas of a table of lines `operators: words := expression`, which indented lines continue."""
    for row in re.sub(r"\n +", " ", table).strip().splitlines():
        operators, _, rest = row.partition(": ")
        words, _, text = rest.rpartition(" := ")
        yield Form(operators, words, computing(text, functions))
