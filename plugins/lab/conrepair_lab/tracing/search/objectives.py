"""Objectives of a search: the difference of both sides at one point, which the search maximizes.

Sides are lists of arrays, one for each output of the network; the truth, where it's known, is what the same inputs
give in float64. NaN and infinity on one side only are findings of their own; where both are, there's nothing to see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from conrepair.ground.metrics.ulps import ulps
from conrepair.ground.operators.record import Array
from conrepair_lab.tracing.search.names import ObjectiveName

Outputs = Sequence[Array]
Objective = Callable[[Outputs, Outputs, float], float]
"""From the tested side, the other one, and how far the input is from the given one it's made from, to a score."""

FINDING = 1e6
"""Added where only one side is NaN or infinite: that's above all scores."""

_SMALL = 1e-8  # added to values that errors are divided by (TracNe's)
_FLAT = 1e-10  # errors below this look alike to the guide
_FEW = 0.1  # what all elements together weigh in the guide, beside the worst one


def relative(one: Outputs, other: Outputs) -> Array:
    """Relative errors of all elements that are finite on both sides: |t - p| / (|t| + 1e-8), as TracNe has them.

    Args:
        one: The tested side.
        other: What errors are relative to.
    """
    alike = ((a, b.astype(np.float64)) for a, b in _real(one, other) if a.shape == b.shape)
    finite = ((a, b, np.isfinite(a) & np.isfinite(b)) for a, b in alike)
    rows = (relative_to(np.abs(a[both] - b[both]), b[both]) for a, b, both in finite)
    return np.concatenate([np.zeros(0), *rows])


def _real(one: Outputs, other: Outputs) -> Iterator[tuple[Array, Array]]:
    """Outputs of real numbers."""
    return ((a, b) for a, b in zip(one, other, strict=True) if a.dtype.kind == "f")


def relative_to(errors: Array, values: Array) -> Array:
    """Absolute errors beside the values that they're errors of."""
    return np.asarray(errors / (np.abs(values) + _SMALL))


def guide(one: Outputs, other: Outputs, distance: float = 0.0) -> float:
    """What leads a search to a large relative error: powers of ten, of the worst element and a little of all others.

    The others show a way where the worst is flat at the level of rounding. Outputs in whole numbers have steps.

    Args:
        one: The tested side.
        other: The other one.
        distance: As objectives are told it.
    """
    logs = np.log10(relative(one, other) + _FLAT)
    return float(logs.max() + _FEW * logs.mean()) if logs.size else _grid_steps(one, other)


def flip(one: Outputs, other: Outputs, distance: float) -> float:
    """Two levels: answers that change, by the smallest change of an input; before that, how near they are to it.

    Args:
        one: The tested side.
        other: The other one.
        distance: Of the input from the one that it was made from, relative.

    Returns:
        1 to 2 where an answer changes, the more the nearer; below 1 where none does.
    """
    if _changed_answers(one, other):
        return 1 + 1 / (1 + distance)
    nearest = 0.0
    for a, b in zip(one, other, strict=True):
        if b.ndim and b.shape[-1] > 1:
            ranked, error = np.sort(b.astype(float), -1), np.abs(a.astype(float) - b).max(-1)
            gap = ranked[..., -1] - ranked[..., -2] + np.finfo(float).tiny
            nearest = max(nearest, float((2 * error / (2 * error + gap)).max()))
    return nearest


def one_sided(one: Outputs, other: Outputs) -> int:
    """How many elements are NaN or infinite on one side only."""
    return sum(int(np.count_nonzero(np.isfinite(a) != np.isfinite(b))) for a, b in _real(one, other))


def scored(objective: Objective, one: Outputs, other: Outputs, distance: float = 0.0) -> float:
    """The score of a point: what an objective says, and above all that what isn't finite on one side only."""
    return FINDING * bool(lost := one_sided(one, other)) + lost + objective(one, other, distance)


def _mean_relative(one: Outputs, other: Outputs, distance: float = 0.0) -> float:
    errors = relative(one, other)
    return float(errors.mean()) if errors.size else 0.0


def _largest_relative(one: Outputs, other: Outputs, distance: float = 0.0) -> float:
    return float(relative(one, other).max(initial=0))


def _largest_ulps(one: Outputs, other: Outputs, distance: float = 0.0) -> float:
    """In units in the last place of the tested side's type, at the other one's values."""
    finite = ((a, b, np.isfinite(a) & np.isfinite(b)) for a, b in _real(one, other))
    return max((float(ulps(a[both], b[both]).max(initial=0)) for a, b, both in finite), default=0.0)


def _changed_answers(one: Outputs, other: Outputs, distance: float = 0.0) -> float:
    """The share of answers (the largest along the last axis) that aren't the same."""
    changed = [np.argmax(a, -1) != np.argmax(b, -1) for a, b in zip(one, other, strict=True) if a.ndim and a.size]
    return float(np.concatenate([np.ravel(array) for array in changed]).mean()) if changed else 0.0


def _grid_steps(one: Outputs, other: Outputs, distance: float = 0.0) -> float:
    """Of outputs in whole numbers, the largest error in steps of their grid, and the mean one as a fraction."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a.dtype.kind in "iu" and a.size]
    steps = [np.abs(a.astype(np.int64) - b.astype(np.int64)).ravel() for a, b in pairs]
    mean = float(np.concatenate(steps).mean()) if steps else 0.0
    return float(max((array.max() for array in steps), default=0)) + mean / (1 + mean)


OBJECTIVES: Mapping[ObjectiveName, Objective] = {
    "answers": _changed_answers,
    "flip": flip,
    "guide": guide,
    "largest": _largest_relative,
    "mean": _mean_relative,
    "steps": _grid_steps,
    "ulps": _largest_ulps,
}
