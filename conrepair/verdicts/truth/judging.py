"""Whether two answers differ because one of them is wrong, or because the network can't be computed any better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from conrepair.ground.metrics.ulps import grid_of
from conrepair.ground.operators.record import Array

_Name = TypeVar("_Name")

LARGE = 1e-3
"""Relative difference of an element from which on two right answers are called ill-conditioned."""

_SHARP = 1e-3  # relative L2 of a slice's bounds that prove something: four of float32's digits are lost

TEXTS = frozenset("OUST")
"""Kinds of arrays that hold no numbers."""


@dataclass(frozen=True)
class Side:
    """The values of one system beside exact values.

    Attributes:
        bounds: Its worst error, in bounds.
        index: Where that is.
        beyond: Elements whose error is beyond their bound.
    """

    bounds: float
    index: tuple[int, ...]
    beyond: int


@dataclass(frozen=True)
class Judgement:
    """The verdict on the difference of two systems' values.

    Attributes:
        kind: "equal" to the last bit, "within" the bound, "ill-conditioned" (they differ by much, and both are as
            right as may be), "wrong" (one of them, or both, is beyond what rounding explains).
        difference: The largest one of an element, relative to the truth.
        index: Where that is.
        one: The first answer.
        two: The second one.
    """

    kind: str
    difference: float
    index: tuple[int, ...]
    one: Side
    two: Side


def judge(one: Array, two: Array, truth: Array, bound: Array) -> Judgement:
    """Judge two answers for one tensor.

    Args:
        one: An answer, in the network's type.
        two: Another one, of the same shape.
        truth: The exact values.
        bound: The largest error of a right answer, element by element.
    """
    sides = beside(one, truth, bound), beside(two, truth, bound)
    apart = distances(one, two)
    with np.errstate(all="ignore"):
        relative = np.where(apart == 0, 0.0, apart / np.abs(truth.astype(np.float64)))
    index = worst_of(relative)
    difference = float(np.nan_to_num(relative[index], nan=np.inf)) if relative.size else 0.0
    kind = "ill-conditioned" if difference > LARGE else "within"
    if any(side.beyond for side in sides):
        kind = "wrong"
    elif not apart.any():
        kind = "equal"
    return Judgement(kind, difference, index, *sides)


def beside(given: Array, truth: Array, bound: Array) -> Side:
    """One answer beside exact values.

    Args:
        given: In the network's type.
        truth: The exact values, of the same shape.
        bound: The largest error of a right answer, element by element.
    """
    errors = distances(given, truth)
    ratios = in_bounds(errors, bound)
    index = worst_of(ratios)
    return Side(float(ratios[index]) if ratios.size else 0.0, index, int((errors > bound).sum()))


def is_sharp(right: Array, bound: Array, most: float) -> bool:
    """Whether bounds are so small that values within them are right: all together, and in each slice.

    Args:
        right: Exact values, samples first.
        bound: Of each element.
        most: Relative L2 that they may have all together.
    """
    if float(np.linalg.norm(bound)) > most * float(np.linalg.norm(right)):
        return False
    for axis in range(1, right.ndim):
        rest = tuple(other for other in range(right.ndim) if other != axis)
        sizes, bounds = (np.sqrt(np.square(array.astype(np.float64)).sum(rest)) for array in (right, bound))
        if np.any(bounds > max(most, _SHARP) * sizes):
            return False
    return True


def in_bounds(errors: Array, bound: Array) -> Array:
    """Errors by their bounds: 0 where there's none or it may be any, above 1 where it's beyond."""
    with np.errstate(all="ignore"):
        ratios = np.where(
            errors <= bound, np.where(bound == np.inf, 0.0, errors / bound), np.fmax(errors / bound, 1.0)
        )
    return np.where(errors == 0, 0.0, ratios)


def stored(dtype: Any, truth: Array, ulps: float = 1.0) -> Array:
    """What exact values may be off by as they're stored: by their last place, and what's below normal ones flushed.

    Args:
        dtype: A narrow type.
        truth: The exact values.
        ulps: In units of that place.
    """
    grid = grid_of(dtype)
    return np.asarray(ulps * grid.ulp(np.asarray(truth, np.float64)) + 2.0**grid.lowest)


def distances(one: Array, two: Array) -> Array:
    """Between elements; infinite where one side isn't finite and the other isn't the same, and of other texts.

    Args:
        one: Numbers of any type, or texts.
        two: The same shape.
    """
    if one.dtype.kind in TEXTS:
        return np.where(one == two, 0.0, np.inf)
    if one.dtype == two.dtype and one.dtype.kind in "iu":  # of 64 bits they are more than a float64 holds
        larger, smaller = np.maximum(one, two), np.minimum(one, two)
        return (larger.astype(np.uint64) - smaller.astype(np.uint64)).astype(np.float64)
    left, right = one.astype(np.float64), two.astype(np.float64)
    with np.errstate(all="ignore"):
        found = np.abs(left - right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.where(same, 0.0, np.where(np.isnan(found), np.inf, found))


def furthest(answers: Iterable[Mapping[_Name, Array]], right: Mapping[_Name, Array]) -> dict[_Name, Array]:
    """How far answers get from what they should be, element by element.

    Args:
        answers: Of disturbed runs.
        right: Numbers, by output.

    Returns:
        By output; infinite where an answer has another shape, or nobody can say how far it is.
    """
    found = {name: np.zeros(array.shape) for name, array in right.items()}
    for given in answers:
        for name, exact in right.items():
            there = np.shape(given[name]) == exact.shape
            found[name] = np.maximum(found[name], distances(given[name], exact) if there else np.inf)
    return found


def worst_of(values: Array) -> tuple[int, ...]:
    """The place of the largest element, the first NaN before all; () of an empty tensor."""
    if not values.size:
        return ()
    return tuple(int(place) for place in np.unravel_index(int(np.argmax(values)), values.shape))
