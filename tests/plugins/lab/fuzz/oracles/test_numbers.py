"""The bound decides, whatever the numbers: right answers are never suspected, and those beyond always."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair_lab.fuzz.oracles.numbers import differing, numbers

_REAL = st.floats(-1e30, 1e30, allow_nan=False)
_TYPES = st.sampled_from([np.float16, np.float32, np.float64])
Array = np.ndarray[Any, Any]


def kinds(given: Array, exact: Array, bound: Any = 0.0) -> list[str]:
    found = numbers({"y": given}, {"y": exact}, {"y": np.broadcast_to(np.float64(bound), exact.shape)})
    return [item.kind for item in found]


@given(st.lists(_REAL, min_size=1, max_size=6), _TYPES)
def test_a_correctly_rounded_answer_is_never_suspected(values: list[float], dtype: Any) -> None:
    exact = np.array(values, np.float64)
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
    assert not kinds(rounded[np.isfinite(rounded)], exact[np.isfinite(rounded)])


@given(st.lists(_REAL, min_size=2, max_size=6), st.data())
def test_one_element_beyond_its_bound_is_named(values: list[float], data: st.DataObject) -> None:
    exact = np.array(values, np.float64)
    place = data.draw(st.integers(0, len(values) - 1))
    bound = np.abs(exact) * 1e-6 + 1e-6
    wrong = exact.copy()
    wrong[place] += 10 * bound[place]
    (found,) = numbers({"y": wrong}, {"y": exact}, {"y": bound})
    assert (found.kind, found.output, found.index) == ("numbers", "y", (place,))
    assert (found.given, found.exact) == (wrong[place], exact[place])
    assert found.over is not None
    assert found.over > 5


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_where_it_should_be(strange: float) -> None:
    exact = np.array([1.0, 2.0])
    assert kinds(np.array([1.0, strange], np.float32), exact, 0.1) == ["not finite"]
    assert not kinds(np.array([1.0, strange], np.float32), np.array([1.0, strange]), 0.1)
    assert not kinds(np.array([1.0, strange], np.float32), exact, np.inf), "rounding may lead there"


def test_a_strange_element_is_named_before_a_worse_one() -> None:
    exact, bound = {"y": np.array([0.0, 1.0])}, {"y": np.array([0.0, 0.0])}
    (found,) = numbers({"y": np.array([1e30, np.nan], np.float32)}, exact, bound)
    assert (found.kind, found.index) == ("not finite", (1,))


def test_truth_values_and_scalars() -> None:
    assert kinds(np.array([True, False]), np.array([True, True])) == ["numbers"]
    assert not kinds(np.array([True, False]), np.array([True, False]))
    (found,) = numbers({"y": np.array(3, np.int64)}, {"y": np.array(4, np.int64)}, {"y": np.zeros(())})
    assert (found.index, found.message) == ((), "y is 3 and should be 4")


def test_no_elements_are_right() -> None:
    assert not kinds(np.zeros((0, 2), np.float32), np.zeros((0, 2)))


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=6))
def test_a_correctly_rounded_bfloat16_is_never_suspected(values: list[float]) -> None:
    exact = np.array(values, np.float64)
    assert not kinds(exact.astype(ml_dtypes.bfloat16), exact)


def test_a_bfloat16_beyond_its_bound_is_suspected() -> None:
    assert kinds(np.array([1.0, 3.0], ml_dtypes.bfloat16), np.array([1.0, 2.0])) == ["numbers"]


@given(st.lists(st.floats(width=32), min_size=1, max_size=6))
def test_the_same_answer_never_differs(values: list[float]) -> None:
    mine = np.array(values, np.float32)
    assert not list(differing({"y": mine}, {"y": mine.copy()}))


@pytest.mark.parametrize("right", [np.nan, np.inf])
def test_what_is_finite_here_alone_differs(right: float) -> None:
    assert list(differing({"y": np.array([1.0, 2.0])}, {"y": np.array([1.0, right])}))


def test_other_texts_and_truth_values_differ() -> None:
    assert list(differing({"y": np.array(["a"])}, {"y": np.array(["b"])}))
    assert list(differing({"y": np.array([True])}, {"y": np.array([False])}))
    assert not list(differing({"y": np.array(["a"])}, {"y": np.array(["a"])}))
    assert not list(differing({}, {"y": np.array([1.0])})), "that's another oracle's"
