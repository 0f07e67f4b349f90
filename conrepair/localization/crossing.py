"""Which pairs of tensors contradict one another: in the source one comes first, in the target the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from conrepair.localization.neighbourhood import Neighbourhood

__all__ = ["contradictions", "in_order", "without_crossing"]

Place = tuple[int, int]


def contradictions(source: Neighbourhood, target: Neighbourhood, pairs: Sequence[Place]) -> list[int]:
    """For each pair those that it contradicts.

    Args:
        source: Whose places are the first ones.
        target: Whose places are the second ones.
        pairs: No tensor of either side twice.

    Returns:
        Of each pair the bits of the others, the first pair's the lowest.
    """
    ours = [source.names[row] for row, _ in pairs]
    theirs = [target.names[column] for _, column in pairs]
    marked = [{name: 1 << place for place, name in enumerate(names)} for names in (ours, theirs)]
    before, behind = source.before_each(marked[0], ours), target.behind_each(marked[1], theirs)
    found = [one & two for one, two in zip(before, behind, strict=True)]
    behind, before = source.behind_each(marked[0], ours), target.before_each(marked[1], theirs)
    return [known | one & two for known, one, two in zip(found, behind, before, strict=True)]


def without_crossing(crossed: Sequence[int]) -> list[int]:
    """Leave out as few pairs as it takes for no two to contradict one another; of two, the worse one.

    A tensor that happens to have the same values as one far away contradicts whatever lies between.

    Args:
        crossed: For each pair the bits of those that it contradicts, better ones first.

    Returns:
        Which stay, in order.
    """
    counts = np.array([bits.bit_count() for bits in crossed], np.int64)
    stay = np.ones(len(counts), np.bool_)
    while counts.any():
        worst = len(counts) - 1 - int(counts[::-1].argmax())
        stay[worst], counts[worst] = False, 0
        for place in _places(crossed[worst]):
            counts[place] -= stay[place]
    return np.flatnonzero(stay).tolist()


def in_order(crossed: Sequence[int], known: Iterable[int]) -> list[int]:
    """Add pairs, better ones first, that contradict none of those that are there.

    Args:
        crossed: For each pair the bits of those that it contradicts, better ones first.
        known: Pairs that stay.

    Returns:
        The others that do, in order.
    """
    fixed = set(known)
    there = 0
    for place in fixed:
        there |= 1 << place
    found = []
    for place, bits in enumerate(crossed):
        if place not in fixed and not bits & there:
            there |= 1 << place
            found.append(place)
    return found


def _places(bits: int) -> list[int]:
    """Of the bits that are set."""
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
