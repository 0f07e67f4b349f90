"""When a candidate is better, and when a result with an edit less is as good."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import localizations
import pytest

from conrepair.evaluate.verdict import Verdict
from conrepair.localize.localize import Found
from conrepair.repair.criteria import error_of, is_as_good, mends


def found(faults: int, error: float, **changes: Any) -> Found:
    """What a localization with so many faults that no piece explains comes to."""
    result = localizations.made(4, dict.fromkeys(range(faults), 0.5), output_error=error)
    if not faults:
        result = dataclasses.replace(result, verdict=Verdict.EQUIVALENT)
    return Found(dataclasses.replace(result, **changes), cast(Any, None), cast(Any, None), ())


@pytest.mark.parametrize(
    ("fewer", "whole", "as_good"),
    [
        (found(0, 1e-7), found(0, 1e-7), True),
        (found(1, 0.3), found(0, 1e-7), False),
        (found(1, 0.3), found(1, 0.3), True),
        (found(1, 0.302), found(1, 0.3), True),  # rounding
        (found(1, 0.4), found(1, 0.3), False),  # the edit did something
        (found(1, float("nan")), found(1, 0.3), False),
        (found(2, 0.3), found(1, 0.3), False),
        (found(0, 0.2, verdict=Verdict.UNDECIDED), found(0, 1e-7), False),  # nothing found, and not right
        (found(0, 0.2, verdict=Verdict.UNDECIDED), found(0, 0.2, verdict=Verdict.UNDECIDED), True),
    ],
)
def test_as_good(fewer: Found, whole: Found, as_good: bool) -> None:
    assert is_as_good(fewer, whole) is as_good


def test_what_is_no_number_is_infinitely_wrong() -> None:
    assert error_of(found(1, float("nan"))) == float("inf")


def test_an_edit_of_outputs_must_take_a_fault_away() -> None:
    assert mends(found(1, 0.5), found(2, 0.1), None)
    assert not mends(found(2, 0.0), found(2, 0.1), None)
