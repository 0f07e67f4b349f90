"""How large the rounding error of a tensor, or of a part of it, may be, by what was measured."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from conrepair.ground.data.tensor_spec import FEW_DIGITS
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.arithmetic import FLOAT32, arithmetic_of


class By(enum.StrEnum):
    """The evidence that a difference is no fault, from the strongest to none."""

    BOUND = "bound"  # each element is within the proven bound of rounding
    TOLERANCE = "tolerance"  # that somebody chose, or the usual one
    ESTIMATE = "estimate"  # runs of the source that are disturbed as by rounding
    SECOND = "second computation"  # the source in another arithmetic, or by other kernels
    OPERATORS = "number of operators"  # a random walk, where nothing was measured
    SIMULATION = "simulation"  # of the source's network in a device's arithmetic
    BUDGET = "budget"  # of few bits that were asked for
    NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Explained:
    """The evidence that a difference is no fault.

    Attributes:
        by: The evidence.
        error: Relative L2 of the difference.
        allowed: The largest relative L2 that the evidence allows; of a bound, of all its elements together.
        arithmetic: Whose rounding it is.
    """

    by: By
    error: float
    allowed: float
    arithmetic: str = FLOAT32.name

    @property
    def units(self) -> float:
        """The difference, in what rounding to the arithmetic's nearest number may change."""
        return self.error / arithmetic_of(self.arithmetic).unit

    @property
    def is_beyond(self) -> bool:
        """Whether the difference is more than the evidence of rounding allows, where there's any."""
        return self.error > self.allowed > 0

    def __str__(self) -> str:
        """For a person: "estimate, 12 units of float32"."""
        if self.by in {By.BUDGET, By.NOTHING}:
            return self.by.value
        return f"{self.by.value}, {self.units:.2g} units of {arithmetic_of(self.arithmetic).words}"


HALF_PRECISIONS = frozenset({"float16", "bfloat16"})


@dataclass(frozen=True)
class Floor:
    """The error that a correct computation may have.

    Attributes:
        relative_l2: The source's own rounding error.
        by: What it's known by: the number of operators where nothing larger was measured.
        precision: That the number of operators stands for.
        doubted: A measurement that's too large to be believed, and that nothing confirmed; 0 where there's none.
        checked: Whether it was measured twice, by other means.
    """

    relative_l2: float
    by: By
    precision: str = FLOAT32.name
    doubted: float = 0.0
    checked: bool = False

    @property
    def measured(self) -> bool:
        """Whether it's no mere estimate from the number of operators, or from a type's digits."""
        return self.by is not By.OPERATORS

    def __str__(self) -> str:
        """For a person: whose rounding error, how large, how it's known."""
        few = self.precision in HALF_PRECISIONS or self.precision in FEW_DIGITS
        whose = f"{self.precision}'s" if few and not self.measured else "the original's own"
        known = "measured" if self.measured else "estimated"
        return f"{whose} rounding error ({percent(self.relative_l2)}, {known})"


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """An estimate of a computation's rounding error before it's measured.

    Attributes:
        operators: How many are computed one behind the other.
        precision: That is meant, the coarser one of both sides'.
        measured_in: The precision of what's measured, where its errors are smaller as that's finer; None: they're
            taken as they are.
        exact: Whether the second computation is in float64, which shows all rounding; other kernels may share theirs.
        units: In the last place, that one operator is off by.
    """

    operators: int
    precision: str = FLOAT32.name
    measured_in: str | None = None
    exact: bool = False
    units: float = 1.0

    @property
    def estimate(self) -> float:
        """Relative L2 of the error of a chain of operators, as a random walk."""
        return self.units * _step(self.precision) * math.sqrt(max(self.operators, 1))

    @property
    def scale(self) -> float:
        """How many times larger errors are than those that were measured."""
        return max(1.0, _step(self.precision) / _step(self.measured_in or self.precision))

    def floor(self, second: float | None = None, disturbed: float | None = None) -> Floor:
        """The rounding error: the larger of the estimate and of measurements that agree.

        What looks like rounding may be a runtime's fault: optimizations that are wrong, operators that are given
        types that don't go together. No measurement is believed beyond 100 times the estimate unless another one, by
        other means, says as much within a factor of 30.

        Args:
            second: Relative L2 between the source and a second computation of it; None where there's none.
            disturbed: The same where what's computed on the way is disturbed as by rounding.
        """
        estimate = self.estimate
        other, own = (
            None if item is None or not math.isfinite(item) else item * self.scale for item in (second, disturbed)
        )
        if own is not None:
            found = own
            if other is not None:
                most = min(max(other, own), numbers.AGREE * max(min(other, own), estimate))
                found = most if self.exact else max(own, most)
            return self._of(found, By.ESTIMATE, checked=True)
        if other is None or other > numbers.UNCHECKED * estimate:
            told = other is not None and (self.exact or other <= numbers.LARGEST_OF_KERNELS)
            return Floor(estimate, By.OPERATORS, self.precision, doubted=other or 0.0 if told else 0.0)
        return self._of(other, By.SECOND, checked=False)

    def _of(self, found: float, by: By, *, checked: bool) -> Floor:
        known = by if found >= self.estimate else By.OPERATORS
        return Floor(max(found, self.estimate), known, self.precision, checked=checked)


def coarser(one: str, two: str) -> str:
    """The precision with the larger rounding errors."""
    return max(one, two, key=_step)


def _step(precision: str) -> float:
    """Between two numbers of a precision, relatively; whole numbers are computed with as those of float32."""
    return 2 * arithmetic_of(precision if precision in HALF_PRECISIONS else FLOAT32.name).unit
