"""Sums and their kin, of rows whose terms are alike, cancel, or lie far from zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conrepair.accuracy import scaled
from conrepair.accuracy.operators.case import FEW, Case
from conrepair.accuracy.scaled import Array, Exact

__all__ = ["REDUCTIONS"]

_LAST = np.array([-1])


def _mean(x: Array) -> Exact:
    value, scale = scaled.summed(x)
    return value / x.shape[-1], scale / x.shape[-1]


def _log_sum(x: Array) -> Exact:
    total, scale = scaled.summed(x)
    return np.log(total), np.abs(np.log(total)) + scale / np.abs(total)


def _running(x: Array) -> Exact:
    return np.cumsum(x, -1), np.cumsum(np.abs(x), -1)


_REDUCED: dict[str, Callable[[Array], Any]] = {
    "ReduceSum": scaled.summed,
    "ReduceMean": _mean,
    "ReduceL1": lambda x: scaled.summed(np.abs(x)),
    "ReduceL2": lambda x: np.sqrt((x**2).sum(-1, keepdims=True)),
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": scaled.log_sum_exp,
    "ReduceSumSquare": lambda x: scaled.summed(x**2),
    "ReduceProd": lambda x: x.prod(-1, keepdims=True),
    "ReduceMax": lambda x: x.max(-1, keepdims=True),
    "ReduceMin": lambda x: x.min(-1, keepdims=True),
}


def _cases(size: int) -> tuple[Case, ...]:
    feeds = {"x": f"rows {size}"}
    return (
        *(
            Case(name, "reductions", f"y = {name}(x, axes)", feeds, truth, {"axes": _LAST}, size, terms=size)
            for name, truth in _REDUCED.items()
        ),
        Case("CumSum", "reductions", "y = CumSum(x, axis)", feeds, _running, {"axis": np.array(1)}, size, terms=size),
    )


REDUCTIONS: tuple[Case, ...] = tuple(case for size in FEW for case in _cases(size))
