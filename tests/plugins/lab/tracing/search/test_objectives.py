"""Scores of two sides."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair_lab.tracing.search.objectives import (
    FINDING,
    OBJECTIVES,
    flip,
    guide,
    one_sided,
    relative,
    scored,
)

ONE = [np.array([[1.0, 2.0, 4.0]], np.float32)]
OTHER = [np.array([[1.0, 2.0, 2.0]], np.float32)]


def test_relative_errors_are_of_the_other_side() -> None:
    assert relative(ONE, OTHER).tolist() == pytest.approx([0, 0, 1])
    values = {name: objective(ONE, OTHER, 0.5) for name, objective in OBJECTIVES.items()}
    assert values["largest"] == pytest.approx(1)
    assert values["mean"] == pytest.approx(1 / 3)
    assert values["ulps"] == 2**23
    assert values["answers"] == 1
    assert values["steps"] == 0
    assert values["flip"] == pytest.approx(1 + 1 / 1.5)


def test_units_in_the_last_place_are_those_of_the_type() -> None:
    one = np.array([1, 1e-30, 0], np.float32)
    other = np.nextafter(one, np.float32(2))
    assert OBJECTIVES["ulps"]([one], [other], 0) == 1
    half = np.array([1.5], np.float16)
    assert OBJECTIVES["ulps"]([half], [np.nextafter(half, np.float16(0))], 0) == 1


def test_steps_are_of_outputs_in_whole_numbers_without_overflow() -> None:
    one, other = [np.array([127, 3], np.int8)], [np.array([-128, 3], np.int8)]
    assert OBJECTIVES["steps"](one, other, 0) == pytest.approx(255 + 127.5 / 128.5)
    assert guide(one, other) > guide(other, other) == 0


def test_what_is_not_finite_on_one_side_only_is_above_all() -> None:
    lost = [np.array([[1.0, np.nan, 4.0]], np.float32)]
    assert one_sided(lost, OTHER) == 1
    assert scored(OBJECTIVES["largest"], lost, OTHER) > FINDING > scored(OBJECTIVES["largest"], ONE, OTHER)
    assert scored(OBJECTIVES["largest"], lost, lost) == 0
    assert relative(lost, lost).size == 2


def test_the_guide_rises_while_the_worst_element_is_flat() -> None:
    steps = []
    for small in (0, 1e-7, 1e-5):
        one = [np.array([1.0 + 1e-4, 1.0 + small, 1.0])]
        steps.append(guide(one, [np.ones(3)]))
    assert steps == sorted(set(steps))
    assert guide([np.array([1.001])], [np.ones(1)]) > steps[-1]


def test_an_answer_that_changes_by_less_is_above_one_that_nearly_changes() -> None:
    near, far = [np.array([[1.0, 1.9]])], [np.array([[1.0, 9.0]])]
    base = [np.array([[1.0, 2.0]])]
    assert 0 < flip(far, base, 0) < 1
    assert flip(base, base, 0) == 0
    changed = [np.array([[2.1, 2.0]])]
    assert flip(changed, base, 0.001) > flip(changed, base, 1) > 1 > flip(far, base, 0) > flip(near, base, 0)
