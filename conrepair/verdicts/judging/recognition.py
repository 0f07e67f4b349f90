"""Which arithmetic a device computes in, by what its results and those of simulations have in common."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conrepair.ground.metrics.running_error import error_of
from conrepair.ground.metrics.ulps import MOST_LEVELS, step_of
from conrepair.ground.operators.record import Array
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.arithmetic import arithmetic_of

_FEWEST = 16  # numbers that say in which type they're stored
_MOST_UNLIKE = 10.0  # so that one fault doesn't decide


@dataclass(frozen=True)
class Fit:
    """How well an arithmetic accounts for a tensor's difference.

    Attributes:
        arithmetic: Its name.
        expected: Relative L2 of the difference that it makes, by simulation.
        left: Relative L2 of what's left of the difference beside the simulation.
        error: Relative L2 of the difference.
        explains: Whether the difference is no larger than it makes.
        cosine: Of the difference, and the one that it makes.
        alike: The largest one of the difference, and what arithmetics of other numbers make (`told_apart`).
    """

    arithmetic: str
    expected: float
    left: float
    error: float
    explains: bool
    cosine: float = 0.0
    alike: float = 0.0

    @property
    def close(self) -> bool:
        """Whether the numbers themselves are those of the simulation, for the most part of what is its own."""
        own = math.sqrt(1 - self.alike**2)
        return 0 < self.error < math.inf and self.left <= numbers.CLOSE * own * self.error

    @property
    def units(self) -> float:
        """The difference in what rounding to the arithmetic's nearest number may change."""
        return self.error / arithmetic_of(self.arithmetic).unit

    def __str__(self) -> str:
        """For a person."""
        item = arithmetic_of(self.arithmetic)
        close = ", with mostly the same numbers" if self.close else ""
        return (
            f"relative error {percent(self.error)} ({self.units:.2g} units of rounding), as if the device computed "
            f"in {item.words}: a simulation of that gives {percent(self.expected)}{close}"
        )


def fit(name: str, right: Array, given: Array, simulated: Array, least: float = 0.0) -> Fit:
    """Compare a difference with what an arithmetic makes.

    It rounds everywhere: where half of the numbers that it changes hardly differ, what differs is something else.
    Whole numbers are the simulation's, or something else.

    Args:
        name: Of the arithmetic.
        right: The source's values.
        given: The device's.
        simulated: The source's network in the arithmetic.
        least: Relative L2 that is within rounding error anyway.
    """
    if not right.shape == given.shape == simulated.shape:
        return Fit(name, 0.0, math.inf, math.inf, explains=False)
    error, expected = error_of(right, given), error_of(right, simulated)
    if not 0 < error < math.inf:
        return Fit(name, expected, math.inf, error, explains=False)
    if right.dtype.kind != "f":
        left = error_of(simulated, given)
        return Fit(name, expected, left, error, explains=left == 0)
    with np.errstate(all="ignore"):
        left = error_of(right, right + (given - simulated))
        gaps = (np.ravel(array.astype(np.float64) - right) for array in (given, simulated))
        gap, made = (np.nan_to_num(array, posinf=0, neginf=0) for array in gaps)
        sizes = float(np.linalg.norm(gap)) * float(np.linalg.norm(made))
        cosine = float(gap @ made) / sizes if sizes else 0.0
        changed = simulated != right
        usual, own = (
            np.median(np.abs(array - right)[changed]) if changed.any() else 0.0 for array in (simulated, given)
        )
    explains = error <= min(max(numbers.TIMES * expected, least), numbers.LARGEST) and own >= numbers.USUAL * usual
    explains = explains or (left <= numbers.ALONE * error and error <= numbers.KNOWN)  # it's the very numbers
    return Fit(name, expected, left, error, explains, cosine)


def told_apart(fits: Mapping[str, Fit]) -> dict[str, Fit]:
    """Fits of one tensor, each with how much the others have in common with the difference, too.

    Where a network makes errors along few directions, those of all arithmetics are alike, and those of faults: a
    simulation's numbers say something only as far as they're its own.

    Args:
        fits: By arithmetic; those that round to as many bits may be alike.
    """
    found = {}
    for name, item in fits.items():
        unit = arithmetic_of(name).unit
        others = (abs(other.cosine) for key, other in fits.items() if arithmetic_of(key).unit != unit)
        found[name] = replace(item, alike=min(1.0, max(others, default=0.0)))
    return found


def recognized(fits: Sequence[Mapping[str, Fit]], names: Collection[str], share: float = 1.0) -> str:
    """The arithmetic that accounts for differences: whose very numbers most of them have, then what's most like them.

    Args:
        fits: Of each tensor that differs, by arithmetic.
        names: The arithmetics to choose from, the finest first.
        share: Of the tensors, at least, that it must explain.

    Returns:
        Its name; "" where none explains so many.
    """
    able = [name for name in names if sum(_explains(item, name) for item in fits) >= max(1, share * len(fits))]
    return min(able, key=lambda name: (-_known(fits, name), round(_unlike(fits, name), 1)), default="")


def _explains(item: Mapping[str, Fit], name: str) -> bool:
    return name in item and item[name].explains


def _known(fits: Sequence[Mapping[str, Fit]], name: str) -> int:
    """How many tensors have the very numbers of a simulation, for the most part."""
    return sum(name in item and item[name].close for item in fits)


def _unlike(fits: Sequence[Mapping[str, Fit]], name: str) -> float:
    """How unlike differences are what an arithmetic makes: 0 for its very numbers, above 1 for more or less of it."""
    return float(np.mean([min(_ratio(item.get(name)), _MOST_UNLIKE) for item in fits]))


def _ratio(item: Fit | None) -> float:
    if item is None or not item.expected or not item.error:
        return math.inf
    return item.left / item.error if item.close else max(item.error / item.expected, item.expected / item.error)


def stored_in(given: Array, right: Array) -> frozenset[str]:
    """The arithmetics whose numbers a device's values are, and the source's aren't; none where that can't be told.

    Args:
        given: The device's values, of whatever type they're handed on in.
        right: The source's.
    """
    if given.dtype.kind != "f" or given.size < _FEWEST or right.dtype.kind != "f":
        return frozenset()
    values, others = (array[np.isfinite(array)].astype(np.float32) for array in (given, right))
    for name in ("bfloat16", "float16"):
        rounds = arithmetic_of(name).results
        if np.array_equal(rounds(values), values) and not np.array_equal(rounds(others), others):
            return frozenset({name, f"{name}-accumulated"})
    return frozenset({"int8"}) if _in_steps(values) and not _in_steps(others) else frozenset()


def _in_steps(values: Array) -> bool:
    """Whether all are multiples of a step, of which there are no more than eight bits count."""
    step = step_of(values)
    return step > 0 and float(np.ptp(values)) < MOST_LEVELS * step
