"""Numbers that aren't known yet: the same results as plain ones, and by z3."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair_lab.generate.settings.expressions import (
    Unknown,
    ceil_div,
    known,
    least,
    most,
    product,
    value_of,
)
from conrepair_lab.generate.settings.ports import NotAllowedError
from conrepair_lab.generate.settings.solving import solved_by_z3


def formulas(a: Any, b: Any) -> list[Any]:
    """What specifications compute with sizes."""
    return [
        a + b, a - b, a * b, 7 - a, 3 + b, 2 * a, (a + 5) // 2, a % 3, ceil_div(a, 4), least(a, b), most(a, 6),
        product([a, b, 2]), -a, sum([a, b, 1]), 17 // (b + 1), 17 % (b + 1),
    ]  # fmt: skip


def conditions(a: Any, b: Any) -> list[Any]:
    return [
        a == b,
        a != b,
        a <= 4,
        a < b,
        a >= b,
        a > 3,
        (a == 1) | (b == 2),
        (a <= 3) & (b >= 1),
        (a == b) | (3 == 4),
    ]


@given(st.integers(0, 40), st.integers(0, 40))
def test_an_expression_has_the_value_of_plain_numbers(a: int, b: int) -> None:
    x, y = Unknown("x", 0, 64), Unknown("y", 0, 64)
    values = {x: a, y: b}
    assert [value_of(item, values) for item in formulas(x, y)] == formulas(a, b)
    assert [bool(value_of(item, values)) for item in conditions(x, y)] == list(map(bool, conditions(a, b)))


def test_z3_gives_up_after_an_effort_that_no_clock_measures() -> None:
    a, b, c, d, e = (Unknown(name, 2, 256) for name in "abcde")
    hard = [a * b * c == d * e * 101 + 7, (a * d) % 97 == 13, (b * e) // 7 == c * 3 + 1, a + b * c == 9973]
    with pytest.raises(NotAllowedError):
        solved_by_z3([a, b, c, d, e], hard, {}, Random(3))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 15))
def test_z3_means_the_same(a: int, b: int, place: int) -> None:
    x, y = Unknown("x", 0, 64), Unknown("y", 0, 64)
    found = solved_by_z3([x, y], [formulas(x, y)[place] == formulas(a, b)[place], x + y == a + b], {}, Random(a))
    assert formulas(found[x], found[y])[place] == formulas(a, b)[place]


def test_what_has_no_solution_is_refused() -> None:
    x, y = Unknown("x", 1, 8), Unknown("y", 1, 8)
    with pytest.raises(NotAllowedError):
        solved_by_z3([x, y], [x * y == 49, x != 7], {}, Random(0))


def test_neutral_numbers_leave_no_expression() -> None:
    x = Unknown("x", 0, 8)
    assert (x + 0) is x
    assert (1 * x) is x
    assert (x // 1) is x
    assert known((x == 1) | True)


def test_a_question_that_python_would_decide_is_an_error() -> None:
    with pytest.raises(TypeError, match="require"):
        bool(Unknown("x", 0, 8) == 3)
