"""Of pairs with the same values, which are chosen, and what neighbours say."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.localization import equals
from conrepair.localization.equals import _Around, _assigned
from conrepair.localization.structure import AROUND, OWN

_TABLE = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9, unique=True)


@given(_TABLE, st.lists(st.integers(1, 400), min_size=9, max_size=9))
def test_no_choice_of_pairs_is_worth_more(pairs: list[tuple[int, int]], wishes: list[int]) -> None:
    rows, columns = (np.array(side) for side in zip(*pairs, strict=True))
    wish = np.array(wishes[: len(pairs)]) / 100
    chosen = _assigned(rows, columns, wish)
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert len(set(rows[chosen])) == len(set(columns[chosen])) == len(chosen)
    best = 0.0
    for count in range(len(pairs) + 1):
        for some in itertools.combinations(range(len(pairs)), count):
            if len({pairs[place][0] for place in some}) == len({pairs[place][1] for place in some}) == count:
                best = max(best, float(wish[list(some)].sum()))
    assert wish[chosen].sum() == pytest.approx(best)


def around(ours: list[list[int]], theirs: list[list[int]]) -> _Around:
    """Of the pairs (0, 0), (1, 1), ...: the places of their neighbours; of others half the surface is alike."""
    places = np.arange(len(ours))
    similarity = SimpleNamespace(size=(9, 9), possible=lambda left, right: left != 8)
    structure = SimpleNamespace(surface=lambda left, _right: np.full(len(left), 0.5))
    sides = SimpleNamespace(similarity=similarity, structure=structure)
    return _Around(cast(Any, sides), (np.array(ours), np.array(theirs)), places, places)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([[-1, -1], [-1, -1]], [[-1, -1], [-1, -1]], [1.0, 1.0]),  # nobody on either side
        ([[1, -1], [-1, -1]], [[1, -1], [-1, -1]], [0.8, 1.0]),
        ([[1, -1], [0, -1]], [[1, -1], [0, -1]], [0.8, 0.6]),
        ([[0, 1], [-1, -1]], [[1, 0], [-1, -1]], [0.7, 1.0]),  # the mean of the best of each
        ([[0, 1], [-1, -1]], [[0, -1], [-1, -1]], [0.55, 1.0]),  # the second isn't one of its own
        ([[1, -1], [-1, -1]], [[-1, -1], [-1, -1]], [0.0, 1.0]),
        ([[-1, -1], [-1, -1]], [[1, -1], [-1, -1]], [0.0, 1.0]),
        ([[5, -1], [8, -1]], [[6, -1], [6, -1]], [0.5, 0.0]),  # no equal values; these may be, those can't
    ],
)
def test_what_neighbours_say(ours: list[list[int]], theirs: list[list[int]], expected: list[float]) -> None:
    found = around(ours, theirs).agreement(np.array([0.6, 0.8]))
    assert found.tolist() == pytest.approx(expected)


def test_half_of_a_score_is_a_pairs_own_and_half_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter((0.4, 0.8))

    class Side:
        def __init__(self, *_: object) -> None:
            self.told = next(told)

        def agreement(self, score: np.ndarray) -> np.ndarray:
            return np.full(len(score), self.told)

    monkeypatch.setattr(equals, "_Around", Side)
    structure = SimpleNamespace(surface=lambda *_: np.array([0.2, 1.0]))
    side, places = SimpleNamespace(before=None, behind=None), np.arange(2)
    sides = SimpleNamespace(source=side, target=side, structure=structure)
    found = equals._scores(cast(Any, sides), places, places)
    assert found.tolist() == pytest.approx([OWN * own + AROUND * 0.6 for own in (0.6, 1.0)])
