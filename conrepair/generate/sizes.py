"""Sizes of new tensors, by bins: a solver left to itself would make nearly all of them one."""

from __future__ import annotations

import itertools
from functools import cache
from random import Random

from conrepair.generate.expressions import Number, known

__all__ = ["LARGEST", "drawn_size"]

LARGEST = 64

_BINS = ((1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, LARGEST))
_WEIGHTS = (1, 10, 8, 4, 2, 1)


def drawn_size(random: Random, low: Number, high: Number | None, room: int) -> int:
    """A size between two bounds.

    Args:
        random: What's drawn comes from here.
        low: Smallest.
        high: Largest; None for none.
        room: What it shouldn't be above, if the bounds allow.
    """
    least = low if known(low) else 1
    most = LARGEST if high is None or not known(high) else high
    bins, weights = _bins(least, max(least, min(most, room)))
    start, end = random.choices(bins, cum_weights=weights)[0] if len(bins) > 1 else bins[0]
    return random.randint(start, end)


@cache
def _bins(least: int, most: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Bins within two bounds, and their weights, summed up."""
    cut = [(max(start, least), min(end, most), weight) for (start, end), weight in zip(_BINS, _WEIGHTS, strict=True)]
    left = [item for item in cut if item[0] <= item[1]] or [(least, least, 1)]
    return [(start, end) for start, end, _ in left], list(itertools.accumulate(weight for _, _, weight in left))
