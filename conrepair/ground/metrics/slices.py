"""The difference between two tensors slice by slice: what a norm of all doesn't see in columns of another size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AxisErrors:
    """Norms of all slices along an axis; each array has one element for each place along it.

    Attributes:
        axis: Of the tensors, whose first one is of samples.
        count: Elements of a slice.
        reference: ||reference||.
        error: ||candidate - reference||.
        others: ||other - reference|| of each further tensor, by its name, and how many elements that rests on: all
            that are alike count, few large ones hide the others.
    """

    axis: int
    count: int
    reference: _Float64
    error: _Float64
    others: Mapping[str, tuple[_Float64, _Float64]]


def errors_by_axis(
    reference: npt.NDArray[Any], candidate: npt.NDArray[Any], others: Mapping[str, npt.NDArray[Any]]
) -> Iterator[AxisErrors]:
    """Measure slices along each axis but the one of samples, in one pass over the values.

    Args:
        reference: Samples first; real numbers.
        candidate: The same shape. What isn't finite in one of the tensors is left out of all.
        others: The same shape, each, by its name.

    Yields:
        One for each axis that is longer than 1.
    """
    shape = reference.shape[1:]
    sides = (candidate, *others.values())
    own, sums = np.zeros(shape), [np.zeros(shape) for _ in sides]
    peaks = [np.zeros(shape) for _ in sides]
    for sample in range(len(reference)):
        one = np.asarray(reference[sample], np.float64)
        gaps = [np.asarray(side[sample], np.float64) for side in sides]
        with np.errstate(invalid="ignore", over="ignore"):
            gaps = [gap - one for gap in gaps]
        told = np.isfinite(one)
        for gap in gaps:
            told &= np.isfinite(gap)
        own += np.square(np.where(told, one, 0.0))
        for gap, total, peak in zip(gaps, sums, peaks, strict=True):
            squares = np.square(np.where(told, gap, 0.0))
            total += squares
            np.maximum(peak, squares, out=peak)
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        rest = tuple(other for other in range(len(shape)) if other != axis)
        totals = [total.sum(axis=rest) for total in sums]
        weights = [
            np.divide(total, largest, out=np.ones(size), where=largest > 0)
            for total, largest in zip(totals, (peak.max(axis=rest) for peak in peaks), strict=True)
        ]
        measured = zip(map(np.sqrt, totals[1:]), weights[1:], strict=True)
        yield AxisErrors(
            axis=axis + 1,
            count=len(reference) * int(np.prod(shape)) // size,
            reference=np.sqrt(own.sum(axis=rest)),
            error=np.sqrt(totals[0]),
            others=dict(zip(others, measured, strict=True)),
        )
