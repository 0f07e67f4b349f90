"""Odd numbers: some may be refused, none may be computed otherwise, or end a process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fuzz_cases import case

from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.fed import drawn_specials, has_specials
from conrepair_lab.fuzz.looking import ILL, RIGHT, SUSPECT, look, looked_at
from conrepair_lab.fuzz.suspicion import REFUSED, Suspicion
from conrepair_lab.fuzz.trial import Trial
from conrepair_lab.systems.registry import entry

QUOTIENT = "g (int32[2] a, int32[2] b) => (int32[2] y) { y = Div (a, b) }"
ONE, ZERO = np.array([7, 8], np.int32), np.array([1, 0], np.int32)


def test_real_inputs_get_some_that_are_not_finite() -> None:
    plain = case("g (float[4,4] x) => (float[4,4] y) { y = Relu (x) }", x=np.ones((4, 4), np.float32))
    drawn = [drawn_specials(plain, np.random.default_rng(seed)).inputs["x"] for seed in range(40)]
    assert all(1 <= (array != 1).sum() <= 3 for array in drawn)
    assert {"nan", "inf", "-inf", "-0.0"} <= {str(value) for array in drawn for value in array.flat}
    assert (plain.inputs["x"] == 1).all()


def test_whole_numbers_change_where_elementwise_operators_alone_read_them() -> None:
    drawn = [drawn_specials(case(QUOTIENT, a=ONE, b=ONE), np.random.default_rng(seed)) for seed in range(40)]
    assert {0, -1, -(2**31), 2**31 - 1} <= {int(value) for item in drawn for value in item.inputs["b"]}
    taken = case(
        "g (float[3] x, int64[2] i) => (float[2] y) { y = Gather (x, i) }",
        x=np.ones(3, np.float32),
        i=np.array([0, 2]),
    )
    for seed in range(20):
        assert drawn_specials(taken, np.random.default_rng(seed)).inputs["i"].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("made", "odd"),
    [
        (case(QUOTIENT, a=ZERO, b=ONE), True),
        (case(QUOTIENT, a=ONE, b=ONE), False),
        (case("g (float[2] x) => (float[2] y) { y = Relu (x) }", x=np.array([1, np.nan], np.float32)), True),
        (case("g (float[2] x) => (float[2] y) { y = Relu (x) }", x=np.zeros(2, np.float32)), False),
    ],
)
def test_what_may_be_refused(made: Case, odd: bool) -> None:
    assert has_specials(made) is odd


def test_a_division_by_zero_may_be_refused_and_may_not_end_a_process() -> None:
    made, setting = case(QUOTIENT, a=ONE, b=ZERO), entry("ort-none").chosen
    refused = looked_at(
        made, Trial((), Suspicion("exception", "run", "Fail", "Integer division by zero")), None, setting
    )
    assert refused.verdict == REFUSED
    ended = looked_at(made, Trial((), Suspicion("crash", "run", "SIGFPE", "it died")), None, setting)
    assert ended.verdict == SUSPECT


def test_what_a_division_by_zero_gives_is_nobodys_fault() -> None:
    made, setting = case(QUOTIENT, a=ONE, b=ZERO), entry("ort-none").chosen
    for value in (0, -1, 12345):
        answers = {"y": np.array([7, value], np.int32)}
        assert looked_at(made, Trial((answers,) * 3), None, setting).verdict in {RIGHT, ILL}
    answers = {"y": np.array([6, 0], np.int32)}
    assert looked_at(made, Trial((answers,) * 3), None, setting).verdict == SUSPECT


def test_not_a_number_goes_through(tmp_path: Path) -> None:
    made = case("g (float[2] x) => (float[2] y) { y = Relu (x) }", x=np.array([-1, np.nan], np.float32))
    asked = entry("ort-all")
    assert look(made, asked.runs, asked.chosen, tmp_path).verdict == RIGHT
    answers = {"y": np.zeros(2, np.float32)}
    assert looked_at(made, Trial((answers,) * 3), None, asked.chosen).verdict == SUSPECT


def test_what_a_negative_power_of_whole_numbers_gives_is_nobodys_fault() -> None:
    text = "g (int32[3] a, float[3] b) => (int32[3] y) { y = Pow (a, b) }"
    made = case(text, a=np.array([2, -1, 3], np.int32), b=np.array([-1, -3, 2], np.float32))
    setting = entry("ort-none").chosen
    for value, verdicts in (((0, -1, 9), {RIGHT, ILL}), ((1, 0, 9), {RIGHT, ILL}), ((0, -1, 8), {SUSPECT})):
        answers = {"y": np.array(value, np.int32)}
        assert looked_at(made, Trial((answers,) * 3), None, setting).verdict in verdicts


def test_inputs_of_one_size_are_odd_in_the_same_places() -> None:
    made = case(
        "g (int32[9] a, int32[9] b) => (int32[9] y) { y = Div (a, b) }",
        a=np.full(9, 7, np.int32),
        b=np.full(9, 7, np.int32),
    )
    drawn = [drawn_specials(made, np.random.default_rng(seed)).inputs for seed in range(200)]
    both = [(set(np.flatnonzero(one["a"] != 7)), set(np.flatnonzero(one["b"] != 7))) for one in drawn]
    assert all(a == b or not a or not b for a, b in both)
    assert any(((one["a"] == np.iinfo(np.int32).min) & (one["b"] == -1)).any() for one in drawn)
