"""Sizes of new tensors, by bins: a solver left to itself would make nearly all of them one."""

from __future__ import annotations

import itertools
from functools import cache
from random import Random

from conrepair_lab.generate.settings.expressions import Number, known

LARGEST = 64

_BINS = ((1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, LARGEST), (LARGEST + 1, 4 * LARGEST))
_WEIGHTS, _OF_LARGE = (1, 10, 8, 4, 2, 1, 0), (1, 1, 2, 4, 8, 8, 4)


def drawn_size(random: Random, low: Number, high: Number | None, room: int, *, large: bool = False) -> int:
    """A size between two bounds.

    Args:
        random: What's drawn comes from here.
        low: Smallest.
        high: Largest; None for none.
        room: What it shouldn't be above, if the bounds allow.
        large: Whether it's one of a large tensor.
    """
    least = low if known(low) else 1
    most = (4 * LARGEST if large else LARGEST) if high is None or not known(high) else high
    bins, weights = _bins(least, max(least, min(most, room)), large)
    start, end = random.choices(bins, cum_weights=weights)[0] if len(bins) > 1 else bins[0]
    return random.randint(start, end)


@cache
def _bins(least: int, most: int, large: bool) -> tuple[list[tuple[int, int]], list[int]]:
    """Bins within two bounds, and their weights, summed up."""
    both = zip(_BINS, _OF_LARGE if large else _WEIGHTS, strict=True)
    cut = [(max(start, least), min(end, most), weight) for (start, end), weight in both]
    left = [item for item in cut if item[0] <= item[1] and item[2]] or [(least, least, 1)]
    return [(start, end) for start, end, _ in left], list(itertools.accumulate(weight for _, _, weight in left))
