"""Cut two networks' unknown tensors into windows that lie between the same known ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from conrepair.localization.crossing import Place
from conrepair.localization.neighbourhood import Neighbourhood
from conrepair.localization.samples import Places

__all__ = ["windows"]

_MOST = 256  # tensors of the source in a window; of the target's up to twice as many
_AT_ONCE = 512 * 512  # pairs that one window is enough for


def windows(
    source: Neighbourhood,
    target: Neighbourhood,
    known: Sequence[Place],
    places: tuple[Places, Places],
    *,
    first: bool = False,
) -> Iterator[tuple[Places, Places]]:
    """Cut, where there are many.

    A tensor lies behind the last of the known pairs that it's computed from. Where many lie behind the same one,
    those go together that are as far on their way.

    Args:
        source: Tensors of the network that is right.
        target: Of the other.
        known: Places of pairs.
        places: Of the tensors in the source, and in the target.
        first: Leave out all but the first ones of many behind the same pair.

    Yields:
        Some of both; each of the source's tensors once, in its order.
    """
    if not len(places[0]) or not len(places[1]):
        return
    if len(places[0]) * len(places[1]) <= _AT_ONCE:
        yield places
        return
    order = sorted(known, key=lambda pair: pair[1])
    (ours, behind), (theirs, other) = (
        _behind(side, [pair[number] for pair in order], chosen)
        for number, (side, chosen) in enumerate(zip((source, target), places, strict=True))
    )
    begins, ends = np.searchsorted(other, behind, "left"), np.searchsorted(other, behind, "right")
    starts = np.searchsorted(behind, behind, "left")
    rank = np.arange(len(ours)) - starts
    share = rank / (np.searchsorted(behind, behind, "right") - starts)
    across = begins + np.floor(share * (ends - begins)).astype(np.int64)
    if first:
        chosen = rank < _MOST
        ours, across = ours[chosen], across[chosen]
    begin = 0
    while begin < len(ours):
        end = min(begin + _MOST, begin + int(np.searchsorted(across[begin:], across[begin] + _MOST, "left")))
        end = max(end, begin + 1)
        low, high = max(0, across[begin] - _MOST // 2), across[end - 1] + _MOST // 2 + 1
        yield np.sort(ours[begin:end]), np.sort(theirs[low:high])
        begin = end


def _behind(side: Neighbourhood, known: Sequence[int], places: Places) -> tuple[Places, Places]:
    """Tensors in the order in which they come behind known ones, and the numbers of these; 0 for none."""
    marked = {side.names[place]: 1 << number for number, place in enumerate(known)}
    bits = side.before_each(marked, [side.names[place] for place in places.tolist()])
    number = np.array([item.bit_length() for item in bits], np.int64)
    order = np.lexsort((places, number))
    return places[order], number[order]
