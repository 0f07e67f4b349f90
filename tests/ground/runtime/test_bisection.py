"""The smallest failing part is found, with few questions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.runtime.bisection import fewest_that_heal, smallest_failing


@pytest.mark.parametrize("guilty", [0, 1, 57, 98, 99])
def test_one_of_a_hundred(guilty: int) -> None:
    found = smallest_failing(100, lambda places: guilty in places, tries=100)
    assert found.places == (guilty,)
    assert found.exact
    assert found.tries <= 15


@given(st.integers(1, 60).flatmap(lambda count: st.tuples(st.just(count), st.sets(st.integers(0, count - 1), min_size=1, max_size=4))))  # fmt: skip  # noqa: E501
def test_those_that_fail_together(case: tuple[int, set[int]]) -> None:
    count, guilty = case
    found = smallest_failing(count, guilty.issubset, tries=5000)
    assert set(found.places) == guilty
    assert found.exact


def test_one_of_two_reasons_is_enough() -> None:
    found = smallest_failing(40, lambda places: 7 in places or 30 in places, tries=100)
    assert found.places in {(7,), (30,)}


def test_what_is_left_fails_when_the_tries_are_up() -> None:
    asked: list[tuple[int, ...]] = []

    def fails(places: Sequence[int]) -> bool:
        asked.append(tuple(places))
        return {3, 90} <= set(places)

    found = smallest_failing(100, fails, tries=4)
    assert len(asked) == found.tries == 4
    assert not found.exact
    assert {3, 90} <= set(found.places)


def test_nothing_is_asked_when_the_time_is_up() -> None:
    found = smallest_failing(10, lambda places: False, tries=10, more=lambda: False)
    assert (found.places, found.tries, found.exact) == (tuple(range(10)), 0, False)


@pytest.mark.parametrize(
    ("culprits", "found"),
    [({"c"}, (2,)), ({"a", "d"}, (0, 3)), ({"x"}, ()), (set(), (0,)), ({"a", "c", "d"}, (0, 2, 3))],
)
def test_those_that_heal_together(culprits: set[str], found: tuple[int, ...]) -> None:
    assert fewest_that_heal("abcd", culprits.issubset, 20).places == found
