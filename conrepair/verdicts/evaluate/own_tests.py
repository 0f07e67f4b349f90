"""A tolerance for a user's own tests that rounding errors pass."""

from __future__ import annotations

import math
from dataclasses import dataclass

from conrepair.ground.metrics.tensors import TensorError


@dataclass(frozen=True, kw_only=True)
class ForTests:
    """|a-b| <= atol + rtol*|reference|, each 1, 2 or 5 times a power of ten.

    Attributes:
        explained: The rounding error to expect at the output's largest number.
        rtol: Relative, of each element.
        atol: Absolute, of each element.
    """

    explained: float
    rtol: float
    atol: float

    def __str__(self) -> str:
        words = f"{self.explained:.0e}: use atol={self.atol:.0e}, rtol={self.rtol:.0e} in your own tests"
        return f"the rounding error of this output is up to {words}".replace("e-0", "e-")


def for_tests(error: TensorError, floor: float, margin: float) -> ForTests | None:
    """What to use for an output that's right.

    An element of a network's output is off by what its whole tensor rounds to, however small it is itself: the
    absolute tolerance holds that alone, and the relative one leaves as much again where inputs give larger outputs.

    Args:
        error: That was measured, which passes, too.
        floor: Relative L2 of rounding errors.
        margin: How many times that is still rounding.

    Returns:
        None where more differs than that, or nothing is relative to anything.
    """
    explained = floor * error.max_reference
    if not (0 < explained < math.inf and error.relative_l2 <= margin * floor):
        return None
    return ForTests(explained=explained, rtol=_rounded_up(floor), atol=_rounded_up(max(explained, error.max_abs)))


def _rounded_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = math.floor(math.log10(value))
    steps = (float(f"{step}e{power}") for step in (1, 2, 5, 10))
    return next(step for step in steps if step >= value)
