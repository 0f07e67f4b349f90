"""Sums and their kin, of rows whose terms are alike, cancel, or lie far from zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conrepair.accuracy.operators.case import FEW, Case
from conrepair.operators.record import Array

__all__ = ["REDUCTIONS"]

_SUMS = ("ReduceSum", "ReduceMean", "CumSum")
_SCALES: dict[str, Callable[[Array, Array], Array]] = {
    "ReduceLogSum": lambda y, x: np.abs(y) + np.abs(x).sum(-1, keepdims=True) / np.abs(x.sum(-1, keepdims=True)),
    "ReduceLogSumExp": lambda y, x: np.abs(y) + np.abs(x).max(-1, keepdims=True),
}
_OTHERS = ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd", "ReduceMax", "ReduceMin")


def _case(name: str, size: int) -> Case:
    body, feeds, sums = f"y = {name}(x, axes)", {"x": f"rows {size}"}, name in _SUMS
    constants = {"axes": np.array(1 if name == "CumSum" else [-1])}
    return Case(name, "reductions", body, feeds, constants, size, terms=size, sums=sums, scale=_SCALES.get(name))


REDUCTIONS: tuple[Case, ...] = tuple(_case(name, size) for size in FEW for name in (*_SUMS, *_SCALES, *_OTHERS))
