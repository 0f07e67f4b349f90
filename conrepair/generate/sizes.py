"""Sizes of new tensors, by bins: a solver left to itself would make nearly all of them one."""

from __future__ import annotations

from random import Random

from conrepair.generate.expressions import Number, known

__all__ = ["LARGEST", "drawn_size"]

LARGEST = 64

_BINS = ((1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, LARGEST))
_WEIGHTS = (2, 10, 8, 4, 2, 1)


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
    most = max(least, min(most, room))
    bins = [(max(start, least), min(end, most), weight) for (start, end), weight in zip(_BINS, _WEIGHTS, strict=True)]
    bins = [item for item in bins if item[0] <= item[1]]
    if not bins:
        return least
    start, end, _ = random.choices(bins, [weight for _, _, weight in bins])[0]
    return random.randint(start, end)
