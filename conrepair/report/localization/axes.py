"""A logarithmic axis for errors, with places for 0 and infinity."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["ErrorAxis", "error_axis"]

_LOWEST, _HIGHEST = 1e-12, 1e6  # what's beyond is drawn at the edge: it's as good as nothing, or as bad as it gets
_FEWEST_DECADES = 3


@dataclass(frozen=True)
class ErrorAxis:
    """Maps errors to heights.

    Attributes:
        low: Exponent of the lowest decade.
        high: Exponent of the highest.
        top: Height (pixels from above) of `high`.
        bottom: The same of `low`.
    """

    low: int
    high: int
    top: float
    bottom: float

    def at(self, error: float) -> float:
        """Pixels from above; 0 lies on the lower edge, infinite and undefined errors on the upper one."""
        if not math.isfinite(error):
            return self.top
        if error <= 0:
            return self.bottom
        share = (math.log10(error) - self.low) / (self.high - self.low)
        return self.bottom - min(max(share, 0.0), 1.0) * (self.bottom - self.top)

    def decades(self) -> list[int]:
        """Exponents to write: at most nine."""
        step = math.ceil((self.high - self.low) / 8)
        return list(range(self.low, self.high + 1, step))


def error_axis(errors: Iterable[float], top: float, bottom: float) -> ErrorAxis:
    """An axis that shows all errors that are numbers above 0."""
    shown = [min(max(error, _LOWEST), _HIGHEST) for error in errors if math.isfinite(error) and error > 0] or [1e-7]
    low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)) + 1e-9)
    return ErrorAxis(low, max(high, low + _FEWEST_DECADES), top, bottom)
