"""Answers that are the same each time are, whatever is in them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair_lab.fuzz.oracles.answers import again


def kinds(*answers: Any) -> list[str]:
    return [item.kind for item in again([{"y": item} for item in answers])]


@given(st.lists(st.floats(width=32), max_size=6))
def test_equal_runs_are_never_suspected(values: list[float]) -> None:
    one = np.array(values, np.float32)
    assert not kinds(one, one.copy(), one.copy())


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a", ""]),
        np.array([True, False]),
        np.array([2**63], np.uint64),
        np.array([np.nan, np.inf], np.float16),
        np.array([np.nan, 1, np.inf], ml_dtypes.bfloat16),
        np.array([1 + 1j, np.nan]),
    ],
)
def test_equal_runs_of_any_type_are_never_suspected(array: Any) -> None:
    assert not kinds(array, array.copy(), array.copy())


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (np.array(["a"]), np.array(["b"])),
        (np.array([True]), np.array([False])),
        (np.array([1]), np.array([2])),
        (np.array([np.nan]), np.array([1.0])),
        (np.array([np.inf]), np.array([-np.inf])),
        (np.array([1], ml_dtypes.bfloat16), np.array([2], ml_dtypes.bfloat16)),
    ],
)
def test_other_answers_are_suspected_by_the_run(one: Any, two: Any) -> None:
    assert kinds(one, two, one) == ["layout"]
    assert kinds(one, one, two) == ["chance"]


def test_one_run_alone_says_nothing() -> None:
    assert not kinds(np.ones(1))
    assert not list(again([]))
