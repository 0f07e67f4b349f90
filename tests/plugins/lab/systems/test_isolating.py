"""What a failure hangs on: one switch, several, pairs that only fail together, none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair_lab.systems.isolating import isolate


def failing(causes: Sequence[set[int]]):  # type: ignore[no-untyped-def]
    return lambda on: any(cause <= set(on) for cause in causes)


@pytest.mark.parametrize(
    ("causes", "heals"),
    [
        ([{37}], {frozenset({37})}),
        ([{3}, {90}], {frozenset({3, 90})}),
        ([{3, 90}], {frozenset({3}), frozenset({90})}),
        ([{1, 2}, {2, 3}], {frozenset({2}), frozenset({1, 3})}),
    ],
)
def test_all_causes_and_all_that_heals(causes: list[set[int]], heals: set[frozenset[int]]) -> None:
    found = isolate(98, failing(causes), tries=200)
    assert {frozenset(cause) for cause in causes} == set(found.causes)
    assert set(found.heals) == heals
    assert found.exact


def test_one_among_98_takes_few_builds() -> None:
    for guilty in range(0, 98, 7):
        assert isolate(98, failing([{guilty}]), tries=200).tries <= 16


def test_no_switch_is_to_blame() -> None:
    found = isolate(20, lambda on: True, tries=50)
    assert (found.causes, found.heals, found.tries) == ((), (), 1)


def test_what_was_found_in_time_is_kept() -> None:
    found = isolate(98, failing([{3}, {90}]), tries=20)
    assert not found.exact
    assert found.causes[:1] in {(frozenset({3}),), (frozenset({90}),)}
    assert found.tries == 20


def test_what_was_halved_when_the_tries_were_up_is_kept() -> None:
    found = isolate(98, failing([{3, 90}]), tries=6)
    assert not found.exact
    assert found.tries == 6
    (cause,) = found.causes
    assert {3, 90} <= cause < frozenset(range(98))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.integers(0, 19), min_size=1, max_size=3), min_size=1, max_size=3))
def test_what_heals_hits_every_cause_and_spares_nothing(causes: list[set[int]]) -> None:
    fails = failing(causes)
    found = isolate(20, fails, tries=3000)
    assert found.exact
    for off in found.heals:
        assert not fails(sorted(set(range(20)) - off))
        assert all(fails(sorted(set(range(20)) - (off - {place}))) for place in off)
    smallest = {frozenset(cause) for cause in causes if not any(other < cause for other in causes)}
    assert set(found.causes) == smallest
