"""What ONNX leaves open, element by element: any result is right there, and nobody is at fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conrepair.verdicts.truth.rules import Call

_Open = Callable[[Call, Any, Any], Any]
"""Which elements of the result may be anything, of the first two operands; it broadcasts to them."""


def opened(call: Call, bounds: list[Any]) -> list[Any]:
    """Bounds of errors, which are infinite where ONNX leaves a result open.

    Args:
        call: Of an operator.
        bounds: Of its results.
    """
    if call.operator not in _OPEN or call.node.onnx_node.domain:
        return bounds
    anything = _OPEN[call.operator](call, *[*map(np.asarray, call.values), None][:2])
    return [np.where(anything, np.inf, bound) for bound in bounds] if np.any(anything) else bounds


def _twice(call: Call, _: Any, indices: Any) -> Any:
    """Of several numbers that are put into one place, any may stay."""
    if call.attribute("reduction", "none") != "none":
        return False
    at = [*np.moveaxis(indices, -1, 0)] if call.operator == "ScatterND" else [*np.indices(indices.shape)]
    if call.operator != "ScatterND":
        at[call.attribute("axis", 0)] = indices
    found = np.zeros(call.result.shape, np.int64)
    np.add.at(found, tuple(at), 1)
    return found > 1


def _cast(call: Call, x: Any, _: Any) -> Any:
    """A real number that the type doesn't hold, as a whole one."""
    if call.result.dtype.kind not in "iu" or x.dtype.kind != "f":
        return False
    ends = np.iinfo(call.result.dtype)
    return ~((np.trunc(x) >= ends.min) & (np.trunc(x) <= ends.max))


def _both(call: Call, x: Any, _: Any) -> Any:
    """Elements for which two conditions hold, of which the standard doesn't say which goes before the other."""
    return (x < -call.attribute("lambd", 0.5)) & (x > call.attribute("lambd", 0.5))


def _unordered(_: Call, x: Any, __: Any) -> Any:
    """Which is the largest where one isn't a number."""
    return np.isnan(x.astype(np.float64)).any()


_OPEN: Mapping[str, _Open] = {
    **dict.fromkeys(("Div", "Mod"), lambda _, __, divisor: (divisor.dtype.kind in "iu") & (divisor == 0)),
    "Pow": lambda call, _, exponent: (call.result.dtype.kind in "iu") & (exponent < 0),
    **dict.fromkeys(("ArgMax", "ArgMin", "Hardmax", "TopK"), _unordered),
    **dict.fromkeys(("ScatterElements", "ScatterND", "Scatter"), _twice),
    "MaxUnpool": lambda _, __, indices: np.unique(indices).size < indices.size,
    "BitShift": lambda _, x, places: places >= 8 * x.dtype.itemsize,  # as many as there are, or more
    **dict.fromkeys(("Cast", "CastLike"), _cast),
    "QuantizeLinear": lambda _, x, scale: np.isnan(x) | ~np.all(scale),
    "Shrink": _both,
}
