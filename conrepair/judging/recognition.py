"""Which arithmetic a device computes in, by what its results and those of simulations have in common."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.judging import numbers
from conrepair.judging.arithmetic import arithmetic_of
from conrepair.metrics.running_error import error_of
from conrepair.operators.record import Array

_MOST_UNLIKE = 10.0  # so that one fault doesn't decide


@dataclass(frozen=True)
class Fit:
    """How well an arithmetic explains a tensor's difference.

    Attributes:
        arithmetic: Its name.
        expected: Relative L2 of the difference that it makes, by simulation.
        left: Relative L2 of what's left of the difference beside the simulation.
        error: Relative L2 of the difference.
        explains: Whether the difference is no larger than it makes.
    """

    arithmetic: str
    expected: float
    left: float
    error: float
    explains: bool

    @property
    def close(self) -> bool:
        """Whether the numbers themselves are those of the simulation, for the most part."""
        return self.left <= numbers.CLOSE * self.error

    @property
    def units(self) -> float:
        """The difference in what rounding to the arithmetic's nearest number may change."""
        return self.error / arithmetic_of(self.arithmetic).unit

    def __str__(self) -> str:
        """For a person."""
        item = arithmetic_of(self.arithmetic)
        close = ", and its numbers are mostly those of the simulation" if self.close else ""
        return (
            f"explained if it computes in {item.words}: relative error {self.error:.1e} ({self.units:.2g} of its "
            f"units), where that makes {self.expected:.1e} by simulation{close}"
        )


def fit(name: str, right: Array, given: Array, simulated: Array, least: float = 0.0) -> Fit:
    """Compare a difference with what an arithmetic makes.

    Args:
        name: Of the arithmetic.
        right: The source's values.
        given: The device's.
        simulated: The source's network in the arithmetic.
        least: Relative L2 that rounding explains anyway.
    """
    if not right.shape == given.shape == simulated.shape:
        return Fit(name, 0.0, math.inf, math.inf, explains=False)
    error, expected = error_of(right, given), error_of(right, simulated)
    left = error_of(simulated, given)
    explains = error <= min(max(numbers.TIMES * expected, least), numbers.LARGEST)
    explains = explains or left <= numbers.ALONE * error  # it's the very numbers
    return Fit(name, expected, left, error, explains)


def recognized(fits: Sequence[Mapping[str, Fit]], names: Collection[str], share: float = 1.0) -> str:
    """The arithmetic that explains differences: whose very numbers most of them have, then what's most like them.

    Args:
        fits: Of each tensor that differs, by arithmetic.
        names: The arithmetics to choose from.
        share: Of the tensors, at least, that it must explain.

    Returns:
        Its name; "" where none explains so many.
    """
    able = [name for name in names if _explained(fits, name) >= max(1, share * len(fits))]
    return min(able, key=lambda name: (-_known(fits, name), _unlike(fits, name)), default="")


def _explained(fits: Sequence[Mapping[str, Fit]], name: str) -> int:
    return sum(name in item and item[name].explains for item in fits)


def _known(fits: Sequence[Mapping[str, Fit]], name: str) -> int:
    """How many tensors have the very numbers of a simulation, for the most part."""
    return sum(item[name].close for item in fits)


def _unlike(fits: Sequence[Mapping[str, Fit]], name: str) -> float:
    """How unlike differences are what an arithmetic makes: 0 for its very numbers, above 1 for more or less of it."""
    return float(np.mean([min(_ratio(item[name]), _MOST_UNLIKE) for item in fits]))


def _ratio(item: Fit) -> float:
    if item.explains:
        return item.left / item.error if item.error else 0.0
    return item.error / item.expected if item.expected else math.inf
