"""Which tensors are near each other, where none are the same."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.localization.apart import Apart
from conrepair.localization.nearness import Near
from conrepair.localization.neighbourhood import Neighbours

_COUNT = 30


def near(pairs: dict[tuple[int, int], float]) -> Near:
    rows, columns = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    return Near(rows, columns, np.array(list(pairs.values())), np.zeros(len(pairs), np.int64), [])


def in_a_row(count: int = _COUNT) -> Neighbours:
    """Each tensor is computed from the one before."""
    before = np.arange(-1, count - 1)[:, None]
    behind = np.append(np.arange(1, count), -1)[:, None]
    return (before, before), (behind, behind)


def chosen(pairs: dict[tuple[int, int], float]) -> set[tuple[int, int]]:
    found = Apart(near(pairs), (_COUNT, _COUNT), 1e-3, in_a_row()).pairs
    return set(zip(found.rows.tolist(), found.columns.tolist(), strict=True))


def everywhere(error: float, rival: float) -> dict[tuple[int, int], float]:
    """Each tensor is off by an error, and by another one from its neighbour."""
    pairs = {(place, place): error for place in range(_COUNT)}
    return pairs | {(place, place + 1): rival for place in range(_COUNT - 1)}


@pytest.mark.parametrize(
    ("error", "rival", "found"),
    [(0.01, 0.3, True), (0.05, 0.5, True), (0.05, 0.3, False), (0.2, 2.0, False), (0.01, 0.0100001, True)],
)
def test_others_have_to_be_much_further(error: float, rival: float, found: bool) -> None:
    pairs = chosen(everywhere(error, rival))
    assert pairs.issuperset({(place, place) for place in range(_COUNT)}) == found
    assert bool(pairs) == found


def test_a_single_one_is_chance() -> None:
    far = {(place, place): 0.7 for place in range(_COUNT) if place not in (7, 8, 20, 21)}
    assert chosen({**far, (7, 20): 0.01}) == set()
    assert chosen({**far, (7, 20): 0.01, (8, 21): 0.02}) == {(7, 20), (8, 21)}


def test_what_is_much_nearer_to_another_is_no_other_ones() -> None:
    apart = Apart(near(everywhere(0.01, 0.3)), (_COUNT, _COUNT), 1e-3, in_a_row())
    rows, columns = np.array([2, 2, 3]), np.array([2, 3, 1])
    assert apart.contradicts(rows, columns).tolist() == [False, True, True]
