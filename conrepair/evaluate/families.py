"""Comparisons that are looked at together, so that the chance of a false alarm is that of all of them."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from conrepair.evaluate.compare import Comparison
from conrepair.metrics.statistics import corrected_times

__all__ = ["with_corrected_times"]


def with_corrected_times(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Correct the tests of times for their number.

    Those of one model on its backends are a family, and so are those between the same two models.

    Args:
        comparisons: Of runs called MODEL@BACKEND.

    Returns:
        The same, in order.
    """
    families: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for index, item in enumerate(comparisons):
        families[frozenset(name.partition("@")[0] for name in (item.reference, item.candidate))].append(index)
    result = list(comparisons)
    for members in families.values():
        corrected = corrected_times([comparisons[index].times for index in members])
        for index, times in zip(members, corrected, strict=True):
            result[index] = dataclasses.replace(comparisons[index], times=times)
    return result
