"""Numbers that are told from what would say nothing."""

from __future__ import annotations

import pytest

from conrepair.ground.runtime.words import telling


@pytest.mark.parametrize(
    ("value", "words"),
    [(1.0, "1"), (1.004, "1.004"), (1.00021, "1.0002"), (0.99998, "0.99998"), (2.0, "2"), (0.91234, "0.912")],
)
def test_as_many_digits_as_tell_it_from_one(value: float, words: str) -> None:
    assert telling(value) == words


def test_another_number_may_say_nothing() -> None:
    assert telling(0.0, neutral=0.0) == "0"
    assert telling(1.0, neutral=0.0) == "1"
