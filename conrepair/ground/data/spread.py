"""Some of many samples: spread over all of them, as a folder has one class behind the other."""

from __future__ import annotations


def spread_places(count: int, wanted: int | None) -> tuple[int, ...]:
    """Places of so many samples, every n-th of them.

    Args:
        count: How many there are.
        wanted: How many are taken; None, or more than there are: all.
    """
    taken = count if wanted is None else min(count, wanted)
    return tuple(index * count // taken for index in range(taken))
