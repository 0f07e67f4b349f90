"""By what a difference is explained, and how large it is in units of the arithmetic that explains it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from conrepair.judging.arithmetic import FLOAT32, arithmetic_of


class By(enum.StrEnum):
    """What explains a difference, from the strongest evidence to none."""

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
    """What explains a difference.

    Attributes:
        by: The evidence.
        error: Relative L2 of the difference.
        allowed: That the evidence explains at most; of a bound, of all its elements together.
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

    def __str__(self) -> str:
        """For a person: "estimate, 12 units of float32"."""
        if self.by in {By.BUDGET, By.NOTHING}:
            return self.by.value
        return f"{self.by.value}, {self.units:.2g} units of {arithmetic_of(self.arithmetic).words}"
