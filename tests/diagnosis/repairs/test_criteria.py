"""When a candidate is better, and when a result with an edit less is as good."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import localizations
import pytest
from repair_world import found as pieces
from repair_world import piece

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.repairs.criteria import (
    computed,
    error_of,
    extent,
    fixes,
    guiltiest,
    introduced,
    is_as_good,
    reach,
    source_of,
    unplaced,
)
from conrepair.verdicts.evaluate.verdict import Verdict


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
    assert fixes(found(1, 0.5), found(2, 0.1), None)
    assert not fixes(found(2, 0.0), found(2, 0.1), None)


def test_pieces_are_known_by_what_the_source_computes() -> None:
    one = piece("s", 0.2, inside=["a", "b"], parameters=["w", ""])
    other = piece("t", 0.7, inside=["c"])
    assert source_of(one) == "s"
    assert computed(one) == {"s", "a", "b"}
    assert reach(one) == {"s", "a", "b", "parameter w"}
    assert computed(piece("s", inside=["a", "s"])) == {"s", "a"}
    assert reach(piece("s", inside=["s"], parameters=["s"])) == {"s", "parameter s"}
    assert extent(pieces([one, other])) == {"s", "a", "b", "t", "c"}
    assert extent(pieces()) == frozenset()
    assert guiltiest(pieces([one, other])) == [other, one]


def test_faults_that_no_piece_explains() -> None:
    assert unplaced(pieces([piece("s")], more=2)) == 2
    assert unplaced(pieces([piece("s")])) == 0
    one_rule = dataclasses.replace(pieces([piece("s"), piece("t")]).result, faults=())
    assert unplaced(Found(one_rule, cast(Any, None), cast(Any, None), (piece("s"), piece("t")))) == 0


def test_what_is_introduced_where_a_piece_ends() -> None:
    assert introduced(pieces([piece("s", 0.2)]), piece("s")) == 0.2
    assert introduced(pieces([], rows={"s": 1e-7}), piece("s")) == 1e-7
    assert introduced(pieces([]), piece("s")) is None


ONE, TWO = piece("s", 0.5, inside=["a"]), piece("t", 0.2)
BEFORE = pieces([ONE, TWO], 0.3)


@pytest.mark.parametrize(
    ("again", "repaired"),
    [
        (pieces([TWO], 0.3, rows={"s": 1e-7}), True),
        (pieces([TWO], 0.9, rows={"s": 1e-7}), True),  # the outputs show the other one now
        (pieces([TWO], 0.3, rows={"s": 0.5}), True),  # not guilty, though no better: as where it isn't measured
        (pieces([TWO], 0.31, rows={"s": 0.5}), False),
        (pieces([TWO], 0.31, rows={"s": 0.4}), True),
        (pieces([TWO, ONE], 0.1), False),
        (pieces([TWO], 0.1, rows={"s": 1e-7}, more=1), False),  # an output is lost
        (pieces([TWO, piece("u")], 0.3, rows={"s": 1e-7}), True),  # was hidden
        (pieces([TWO, piece("a")], 0.3, rows={"s": 1e-7}), False),  # is within it
        (pieces([TWO, piece("u", inside=["a"])], 0.3, rows={"s": 1e-7}), False),
        (pieces([TWO], 0.2), True),  # it can't be told from its surroundings, and these are better
        (pieces([TWO], 0.3), True),  # as good, while something is left that hides it
        (pieces([TWO], 0.31), False),
        (pieces([], 0.3), False),
        (pieces([], 0.29), True),
        (pieces([TWO, piece("u")], 0.2), False),
    ],
)
def test_a_piece_is_repaired(again: Found, repaired: bool) -> None:
    assert fixes(again, BEFORE, ONE) is repaired


def test_an_edit_of_outputs_makes_nothing_else_guilty() -> None:
    before = pieces([ONE], more=1)
    assert fixes(pieces([ONE]), before, None)
    assert not fixes(pieces([TWO]), before, None)
    assert not fixes(before, before, None)


@pytest.mark.parametrize(
    ("fewer", "whole", "as_good"),
    [
        (pieces([ONE], 0.3), pieces([ONE], 0.3), True),
        (pieces([TWO], 0.3), pieces([ONE], 0.3), False),
        (pieces([TWO], 0.3), pieces([ONE, TWO], 0.3), True),
        (pieces([ONE], 0.3, more=1), pieces([ONE], 0.3), False),
    ],
)
def test_no_more_is_at_fault(fewer: Found, whole: Found, as_good: bool) -> None:
    assert is_as_good(fewer, whole) is as_good
