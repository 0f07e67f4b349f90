"""Class scores that are right but stand in other places: shifted by some classes, or permuted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from conrepair.diagnosis.localization.numbers import judging
from conrepair.ground.metrics.spread import error_of_spread
from conrepair.ground.runtime.words import percent

Array = npt.NDArray[Any]

_SHOWN = 3
_TRIED_ON = 16  # samples by which shifts are tried; the best is checked on all


def explain_label_shift(reference: Array, candidate: Array) -> tuple[str, float] | None:
    """Find out whether class scores are shifted, as between 1000 classes and 1001 with a background.

    Args:
        reference: [N, C] scores.
        candidate: [N, D] scores; D may differ from C.

    Returns:
        The shift, in words, and the relative error without it, over the classes that both have; None when none
        explains the scores, or none is needed.
    """
    if not _are_scores(reference, candidate):
        return None
    few = reference[:_TRIED_ON], candidate[:_TRIED_ON]
    shift = min(
        _shifts(reference.shape[1], candidate.shape[1]), key=lambda item: (_shifted_error(*few, item), abs(item))
    )
    error, before = (_shifted_error(reference, candidate, item) for item in (shift, 0))
    if shift == 0 or error > judging.SAME_ANSWERS or error > judging.EXPLAINED * before:
        return None
    circular = reference.shape[1] == candidate.shape[1] and (
        error_of_spread(reference, np.roll(candidate, -shift, axis=1)) <= judging.SAME_ANSWERS
    )
    side = "after" if shift > 0 else "before"
    counts = f"{candidate.shape[1]} classes against {reference.shape[1]}: " if not circular else ""
    evidence = (
        f"{counts}class k of the original is {abs(shift)} {side} k in the converted model; with classes in that "
        f"order, the relative error falls from {percent(before)} to {percent(error)}"
    )
    return evidence, before


def explain_class_permutation(reference: Array, candidate: Array) -> str | None:
    """Find out whether class scores are permuted, by pairing columns of the same values.

    The pairs are found on one half of the samples and must hold on the other: few samples can be paired somehow.

    Args:
        reference: [N, C] scores, N at least 2.
        candidate: [N, C] scores.

    Returns:
        The permutation, in words; None when none explains the scores, or none is needed.
    """
    if not _are_scores(reference, candidate) or reference.shape != candidate.shape or len(reference) < 2:
        return None
    before = error_of_spread(reference, candidate)
    found, held_out = slice(0, None, 2), slice(1, None, 2)
    order = _assigned(reference[found], candidate[found])
    unseen = error_of_spread(reference[held_out], candidate[held_out][:, order])
    if unseen > judging.SAME_ANSWERS or unseen > judging.EXPLAINED * before:
        return None
    order = _assigned(reference, candidate)
    error = error_of_spread(reference, candidate[:, order])
    moved = np.flatnonzero(order != np.arange(len(order)))
    examples = ", ".join(f"{place} is at {order[place]}" for place in moved[:_SHOWN])
    return (
        f"{len(moved)} of {len(order)} classes are at another index ({examples}); with that undone, the relative "
        f"error falls from {percent(before)} to {percent(error)}, on unseen samples to {percent(unseen)}"
    )


def _are_scores(reference: Array, candidate: Array) -> bool:
    same = reference.ndim == candidate.ndim == 2 and len(reference) == len(candidate) and len(reference) > 0
    wide = same and min(reference.shape[1], candidate.shape[1]) > 1
    return wide and bool(np.isfinite(reference).all() and np.isfinite(candidate).all())


def _shifts(one: int, two: int) -> Iterator[int]:
    """Those that leave at least half of the classes of both to compare, without wrapping."""
    least = (min(one, two) + 1) // 2
    return (shift for shift in range(least - one, two - least + 1) if _overlap(one, two, shift) >= least)


def _overlap(one: int, two: int, shift: int) -> int:
    return min(one, two - shift) - max(0, -shift)


def _shifted_error(reference: Array, candidate: Array, shift: int) -> float:
    first, last = max(0, -shift), min(reference.shape[1], candidate.shape[1] - shift)
    return error_of_spread(reference[:, first:last], candidate[:, first + shift : last + shift])


def _assigned(reference: Array, candidate: Array) -> npt.NDArray[np.intp]:
    """Of each of the reference's columns the candidate's that is nearest, each taken once."""
    distances = scipy.spatial.distance.cdist(
        np.asarray(reference, np.float64).T, np.asarray(candidate, np.float64).T, "sqeuclidean"
    )
    # Equal columns keep their places: any other order of them would do as well.
    smallest = distances[distances > 0].min(initial=np.inf)
    np.fill_diagonal(distances, np.diagonal(distances) - (1e-6 * smallest if np.isfinite(smallest) else 1.0))
    columns: npt.NDArray[np.intp] = scipy.optimize.linear_sum_assignment(distances)[1]
    return columns
