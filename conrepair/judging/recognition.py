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

__all__ = ["Fit", "fit", "recognized"]


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
            f"explained if it computes in {item.words}: relative error {self.error:.1e}, where that makes "
            f"{self.expected:.1e} by simulation{close}"
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
    allowed = max(numbers.TIMES * expected, least)
    explains = error <= min(allowed, numbers.LARGEST) and left <= allowed
    explains = explains or left <= numbers.ALONE * error  # it's the very numbers
    return Fit(name, expected, left, error, explains)


def recognized(fits: Sequence[Mapping[str, Fit]], names: Collection[str], share: float = 1.0) -> str:
    """The arithmetic that explains differences, and whose simulation leaves least of them.

    Args:
        fits: Of each tensor that differs, by arithmetic.
        names: The arithmetics to choose from.
        share: Of the tensors, at least, that it must explain.

    Returns:
        Its name; "" where none explains so many.
    """
    able = [name for name in names if _explained(fits, name) >= max(1, share * len(fits))]
    return min(able, key=lambda name: _left(fits, name), default="")


def _explained(fits: Sequence[Mapping[str, Fit]], name: str) -> int:
    return sum(name in item and item[name].explains for item in fits)


def _left(fits: Sequence[Mapping[str, Fit]], name: str) -> float:
    """The share of a difference that's left beside simulations, in the middle of all tensors."""
    return float(np.median([item[name].left / item[name].error if item[name].error else 0.0 for item in fits]))
