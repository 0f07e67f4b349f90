"""A logarithmic axis for errors, with places for 0 and infinity; places for marks that don't overlap."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

__all__ = ["ErrorAxis", "error_axis", "spread"]

_LOWEST, _HIGHEST = 1e-12, 1e6  # what's beyond is drawn at the edge: it's as good as nothing, or as bad as it gets
_FEWEST_DECADES, _MOST_LABELS = 3, 8


@dataclass(frozen=True)
class ErrorAxis:
    """Maps errors to heights.

    Attributes:
        low: Exponent at the lower edge.
        high: Exponent at the upper edge.
        top: Pixels from above of the upper edge.
        bottom: The same of the lower edge.
        zero: Whether the lower edge stands for 0.
        infinite: Whether the upper edge stands for what's no number.
    """

    low: int
    high: int
    top: float
    bottom: float
    zero: bool
    infinite: bool

    def at(self, error: float) -> float:
        """Pixels from above."""
        if not math.isfinite(error):
            return self.top
        if error <= 0:
            return self.bottom
        share = (math.log10(error) - self.low) / (self.high - self.low)
        return self.bottom - min(max(share, 0.0), 1.0) * (self.bottom - self.top)

    def labels(self) -> list[tuple[float, str]]:
        """Pixels from above and text of each line of the grid, from the lower edge up."""
        inner = range(self.low + self.zero, self.high - self.infinite + 1)
        found = [(self.at(10.0**exponent), f"1e{exponent}") for exponent in inner[:: 1 + len(inner) // _MOST_LABELS]]
        below = [(self.bottom, "0")] if self.zero else []
        above = [(self.top, "infinite")] if self.infinite else []
        return [*below, *found, *above]


def error_axis(errors: Collection[float], top: float, bottom: float) -> ErrorAxis:
    """An axis that shows all errors.

    Args:
        errors: 0 or more, infinite, or not a number.
        top: Pixels from above of the upper edge.
        bottom: The same of the lower edge.
    """
    shown = [min(max(error, _LOWEST), _HIGHEST) for error in errors if math.isfinite(error) and error > 0] or [1e-7]
    low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))
    high = max(high, low + _FEWEST_DECADES)
    zero, infinite = any(error == 0 for error in errors), not all(map(math.isfinite, errors))
    return ErrorAxis(low - zero, high + infinite, top, bottom, zero, infinite)


def spread(wanted: Sequence[float], apart: float, last: float) -> list[float]:
    """Push places apart, as little to the right as it takes, and back where that leads over the edge.

    Args:
        wanted: Ascending.
        apart: What must be between two.
        last: The edge.
    """
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + apart) if places else place)
    edge = last
    for index in range(len(places) - 1, -1, -1):
        places[index] = min(places[index], edge)
        edge = places[index] - apart
    return places
