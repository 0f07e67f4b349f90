"""Fit a line through the values of a pair of tensors, and keep a few of them for a scatter plot."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.run.kept import Scatter

_PAIRS = 512
_FITTED = 1 << 20  # values that the line is fitted to
_SAME = 0.01  # of a value's own size, and
_SMALL = 1e-4  # of the root mean square: two values this near are the same to an eye
_LEAST = 3
_DIGITS = 4

Values = npt.NDArray[np.floating]


def scatter_of(one: Values, two: Values) -> Scatter | None:
    """The line, and pairs that are spread over the values; None where fewer than three pairs are numbers.

    Args:
        one: What the original model has.
        two: What the converted model has at the same places.
    """
    step = math.ceil(one.size / _FITTED) | 1
    sides = [np.asarray(side.reshape(-1)[::step], np.float64) for side in (one, two)]
    known = np.isfinite(sides[0]) & np.isfinite(sides[1])
    ours, theirs = (side[known] for side in sides)
    if ours.size < _LEAST:
        return None
    factor, offset, correlation = _line(ours, theirs)
    size = np.sqrt(np.mean(np.square(ours)))
    same = np.abs(theirs - ours) <= _SAME * np.abs(ours) + _SMALL * size
    places = _spread(ours)
    return Scatter(
        source=_short(ours[places]),
        target=_short(theirs[places]),
        factor=factor,
        offset=offset,
        correlation=correlation,
        same=float(np.mean(same)),
    )


def _line(ours: Values, theirs: Values) -> tuple[float, float, float]:
    """Factor, offset and correlation of the line of least squares; no numbers where a side's values are equal."""
    means = float(ours.mean()), float(theirs.mean())
    apart = ours - means[0], theirs - means[1]
    spreads = [float(np.mean(np.square(side))) for side in apart]
    if not all(math.isfinite(spread) and spread > 0 for spread in spreads):
        return math.nan, math.nan, math.nan
    shared = float(np.mean(apart[0] * apart[1]))
    factor = shared / spreads[0]
    return factor, means[1] - factor * means[0], shared / math.sqrt(spreads[0] * spreads[1])


def _spread(ours: Values) -> npt.NDArray[np.intp]:
    """Places of values: half as densely as values lie, half at even steps from the smallest to the largest."""
    order = np.argsort(ours, kind="stable")
    if ours.size <= _PAIRS:
        return order
    even = np.linspace(0, ours.size - 1, _PAIRS // 2).astype(np.intp)
    steps = np.linspace(ours[order[0]], ours[order[-1]], _PAIRS // 2)
    near = np.minimum(np.searchsorted(ours, steps, sorter=order), ours.size - 1)
    return np.asarray(order[np.unique(np.concatenate([even, near]))])


def _short(values: Values) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values)
