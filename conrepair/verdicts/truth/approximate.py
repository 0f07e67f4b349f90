"""Numbers with a bound on how far a computed one may be off, and arithmetic that keeps it: running error analysis.

Every result is bounded for all computed operands within their bounds, not to first order only: products have their
second term, quotients the smallest denominator, functions are evaluated at the ends. What isn't bounded is the
rounding of these float64 computations themselves, 2^-29 of a float32 rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conrepair.ground.metrics.ulps import Grid
from conrepair.ground.operators.record import Array

_BY_CHANCE = 3.0  # standard deviations


@dataclass(frozen=True)
class Machine:
    """The arithmetic that a tensor is computed in; results below the smallest normal number may become zero.

    Attributes:
        grid: Of its type; None where results are exact (whole numbers, or nothing is rounded).
        ulps: Accuracy of the operator's own function, in units in the last place; one for each element, or one.
        likely: Whether the roundings of a sum are taken to be of both signs: the square root of their number counts
            (Higham, Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41, 2019),
            of what the sum is on the way: itself, and where terms cancel what's left of them by chance (the same,
            "Sharper Probabilistic Backward Error Analysis for Basic Linear Algebra Kernels with Random Data", 2020).
    """

    grid: Grid | None
    ulps: float | Array = 1.0
    likely: bool = False

    @property
    def unit(self) -> float:
        """What rounding to the nearest may change, relatively."""
        return self.grid.unit if self.grid else 0.0

    def settled(self, value: Array, moved: Array, ulps: float | Array | None = None) -> Array:
        """The bound of a rounded result; infinite where it may overflow.

        Args:
            value: The exact result.
            moved: How far what it's computed of may lead from it.
            ulps: Accuracy of the operation; the machine's when None.
        """
        moved = np.where(np.isnan(moved), np.inf, moved)
        accuracy = self.ulps if ulps is None else ulps
        if self.grid is None or not np.any(accuracy):
            return moved
        reached = np.abs(value) + moved
        steps = self.grid.ulp(reached)
        steps = np.where(reached < 2.0**self.grid.lowest, np.maximum(steps, 2.0**self.grid.lowest), steps)
        bound = moved + accuracy * steps
        bound = np.where(np.abs(value) + bound > self.grid.largest, np.inf, bound)
        return np.where(np.isfinite(value) | (moved != 0), bound, 0.0)

    def accumulated(self, value: Array, moved: Array, count: Any, terms: Array) -> Array:
        """The bound of a sum of products, in any order and with or without fused operations.

        Args:
            value: The exact sum.
            moved: How far its terms may lead from it.
            count: Roundings that a term goes through at the most.
            terms: The sum of all terms' magnitudes.
        """
        moved = np.where(np.isnan(moved), np.inf, moved)
        if self.grid is None:
            return moved
        if self.likely:
            count = np.sqrt(count)
            terms = np.minimum(terms, np.abs(value) + moved + _BY_CHANCE * terms / np.maximum(count, 1))
        share = count * self.grid.unit
        share = np.where(share < 1, share / np.maximum(1 - share, self.grid.unit), np.inf)  # more terms than digits
        rounded = share * terms + count * 2.0**self.grid.lowest
        rounded = np.where(terms > self.grid.largest, np.inf, rounded)
        moved = np.where(np.isfinite(value) | (moved > 0), moved + rounded, 0)
        return self.settled(value, moved, np.minimum(self.ulps, 1.0))


@dataclass(frozen=True)
class Approximate:
    """A tensor with the bounds of its elements.

    Attributes:
        value: Exact, float64.
        bound: Largest distance of a computed element, of the value's shape.
        machine: What results of it are rounded by.
    """

    value: Array
    bound: Array
    machine: Machine

    def __abs__(self) -> Approximate:
        """Magnitudes, exactly."""
        return replace(self, value=np.abs(self.value))

    def __add__(self, other: Approximate | float) -> Approximate:
        """Rounded sum."""
        two = self._as(other)
        return self._made(self.value + two.value, self.bound + two.bound)

    def __sub__(self, other: Approximate) -> Approximate:
        """Rounded difference."""
        return self._made(self.value - other.value, self.bound + other.bound)

    def __mul__(self, other: Approximate | float) -> Approximate:
        """Rounded product."""
        two = self._as(other)
        moved = np.abs(self.value) * two.bound + (np.abs(two.value) + two.bound) * self.bound
        return self._made(self.value * two.value, moved)

    def __truediv__(self, other: Approximate) -> Approximate:
        """Rounded quotient; anything where the denominator may be zero."""
        size, least = np.abs(other.value), np.abs(other.value) - other.bound
        moved = (self.bound + np.abs(self.value) * other.bound / size) / least
        exact = (self.bound == 0) & (other.bound == 0)
        return self._made(self.value / other.value, np.where(exact, 0, np.where(least > 0, moved, np.inf)))

    def sum(self, axes: tuple[int, ...]) -> Approximate:
        """Rounded sum along axes, which are kept."""
        value = self.value.sum(axis=axes, keepdims=True)
        count = self.value.size // max(value.size, 1)
        moved = self.bound.sum(axis=axes, keepdims=True)
        terms = (np.abs(self.value) + self.bound).sum(axis=axes, keepdims=True)
        return replace(self, value=value, bound=self.machine.accumulated(value, moved, count, terms))

    def mean(self, axes: tuple[int, ...]) -> Approximate:
        """Rounded mean along axes, which are kept."""
        total = self.sum(axes)
        return total * (total.value.size / max(self.value.size, 1))

    def through(self, function: Callable[[Array], Array]) -> Approximate:
        """A monotone function's value, with the machine's accuracy.

        Args:
            function: Of arrays; NaN outside of its domain.
        """
        value = function(self.value)
        ends = [np.abs(function(end) - value) for end in (self.value - self.bound, self.value + self.bound)]
        moved = np.where(self.bound == 0, 0, np.maximum(*ends))
        return replace(self, value=value, bound=self.machine.settled(value, moved))

    def reshaped(self, shape: Any) -> Approximate:
        """The same numbers in another shape."""
        return replace(self, value=self.value.reshape(shape), bound=self.bound.reshape(shape))

    def _as(self, other: Approximate | float) -> Approximate:
        return other if isinstance(other, Approximate) else Approximate(np.array(other), np.zeros(()), self.machine)

    def _made(self, value: Array, moved: Array) -> Approximate:
        """One operation that's correctly rounded, or two that stand for it (a product by the reciprocal)."""
        return replace(self, value=value, bound=self.machine.settled(value, moved, 1.0))
