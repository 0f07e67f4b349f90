"""The oracle of numbers that are beyond rounding error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from conrepair.ground.metrics.ulps import grid_of, is_number, is_real
from conrepair.verdicts.truth.disturbed import shaken, with_noise
from conrepair.verdicts.truth.judging import beside, distances, furthest, stored
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.generate.onnx_form import ModelSession, RefusedError

_MARGIN = 4.0  # of an estimate
_FAR = 0.1  # relative to an answer's size: further apart is no order of operations


def numbers(
    given: Mapping[str, Array], truth: Mapping[str, Array], bounds: Mapping[str, Array]
) -> Iterator[Suspicion]:
    """Suspect outputs that are beyond rounding error.

    Args:
        given: Of a system, by output.
        truth: Exact values.
        bounds: Of the error of a right answer, element by element.
    """
    for name, exact in truth.items():
        mine = given.get(name)
        if mine is None or mine.shape != np.shape(exact):
            continue
        if mine.dtype.kind in "OUSTc":
            if (apart := np.asarray(mine != exact)).any():
                place = tuple(map(int, np.argwhere(apart)[0]))
                texts = str(mine[place]), str(exact[place])
                yield Suspicion("numbers", "answers", "", f"{name} holds other strings", "", name, place, *texts)
            continue
        bound = allowance(mine, exact, bounds[name])
        found = beside(mine, exact, bound)
        if not found.beyond:
            continue
        strange = ~np.isfinite(mine.astype(np.float64)) & np.isfinite(exact) & np.isfinite(bound)
        place = tuple(map(int, np.argwhere(strange)[0])) if strange.any() else found.index
        values = _number(mine[place]), _number(exact[place])
        form = "d" if all(isinstance(value, int) for value in values) else ".9g"
        words = f"{name}{list(place) if place else ''} is {values[0]:{form}} and should be {values[1]:{form}}"
        kind = "not finite" if strange.any() else "numbers"
        allowed = float(bound[place])
        yield Suspicion(kind, "answers", "", words, "", name, place, *values, allowed, float(found.bounds))


def allowance(given: Array, exact: Array, bound: Array) -> Array:
    """The largest rounding error of each element.

    Args:
        given: The answer.
        exact: The value.
        bound: Of a right answer's error, before it's stored.
    """
    if given.shape != np.shape(exact):
        return np.zeros(given.shape)
    bound = np.broadcast_to(bound, given.shape)
    if given.dtype.kind in "fV":  # V: narrow types of ml_dtypes
        return bound + np.where(np.isnan(exact), 0.0, stored(given.dtype, exact))
    if given.dtype.kind in "iu":
        ends = np.iinfo(given.dtype)  # beyond them ONNX doesn't say what comes
        return np.where((given == ends.min) | (given == ends.max) | ~np.isfinite(exact), np.inf, bound)
    return bound


def _number(value: np.generic) -> int | float:
    """Whole numbers stay such: a float holds not all of 64 bits."""
    return int(value) if value.dtype.kind in "iu" else float(value)


def differing(
    given: Mapping[str, Array], other: Mapping[str, Array], allowed: Mapping[str, Array] | None = None
) -> Iterator[Suspicion]:
    """Suspect outputs that are far from another system's, where no exact values are known.

    Args:
        given: Of a system, by output.
        other: Of another system.
        allowed: How far right ones may be apart, as far as that's been estimated; else a tenth of their size.
    """
    for name, right in other.items():
        mine = given.get(name)
        if mine is None or mine.shape != right.shape:
            continue
        texts = mine.dtype.kind in "OUSTc" or right.dtype.kind in "OUSTc"
        far = np.zeros(right.shape) if texts else far_apart(name, right, allowed)
        with np.errstate(all="ignore"):
            apart = mine != right if texts else distances(mine, right) > far
        if apart.any():
            place = tuple(map(int, np.argwhere(apart)[0]))
            words = f"{name}{list(place) if place else ''} is {mine[place]}, and {right[place]} in other systems"
            here, there = (str(each[place]) if texts else _number(each[place]) for each in (mine, right))
            off = None if texts else float(far[place])
            yield Suspicion("differs", "answers", "", words, "", name, place, here, there, off)


def far_apart(name: str, right: Array, allowed: Mapping[str, Array] | None = None) -> Array:
    """As it's been estimated; else a tenth of its size, but not of what's small beside the largest.

    Args:
        name: Of an output.
        right: Another system's.
        allowed: As of `differing`.
    """
    if allowed is not None and name in allowed:
        return allowed[name]
    with np.errstate(all="ignore"):
        size = np.abs(right.astype(np.float64))
        finite = size[np.isfinite(size)]
        far = _FAR * np.maximum(size, float(finite.max()) * _FAR if finite.size else 0.0)
    return np.where(np.isfinite(size), far, 0.0)


def spread(case: Case, right: Mapping[str, Array]) -> dict[str, Array] | None:
    """The largest difference of right outputs where there are no exact values, by disturbing ONNX Runtime's.

    It's estimated, element by element, by runs with all real results disturbed by some of their last place.

    Args:
        case: Any.
        right: ONNX Runtime's answers without optimizations.

    Returns:
        By output; infinite where disturbed answers jump that don't stand for reals. None where ONNX Runtime doesn't
        take the network with disturbances.
    """
    network, ones = with_noise(case.model)
    numbers = {name: array for name, array in right.items() if is_number(array)}
    try:
        session = ModelSession(network, [item.name for item in network.graph.output])
        far = furthest(map(session.run, shaken({**case.inputs, **ones})), numbers)
    except RefusedError:
        return None
    return {name: _margin(array, far[name]) for name, array in numbers.items()}


def _margin(right: Array, far: Array) -> Array:
    """Of what is real a multiple, and some of the last place where nothing moves; else all, where it does."""
    if not is_real(right):
        return np.where(far == 0, 0.0, np.inf)
    with np.errstate(all="ignore"):
        return _MARGIN * np.maximum(far, grid_of(right.dtype).ulp(np.abs(right.astype(np.float64))))
