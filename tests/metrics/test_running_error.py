"""Sums in the tensors' own precision against `compare_tensors`, which is exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conrepair.metrics.running_error import RunningError
from conrepair.metrics.tensors import compare_tensors

NAN, INF = math.nan, math.inf


def of(*pairs: tuple[np.ndarray, np.ndarray]) -> RunningError:
    error = RunningError()
    for one, two in pairs:
        error.add(one, two)
    return error


def assert_agrees(one: np.ndarray, two: np.ndarray, rel: float = 1e-4) -> None:
    found, expected = of((one, two)), compare_tensors(one, two, rtol=0, atol=0)
    assert found.count == expected.count
    assert found.mismatched == expected.mismatched
    if not expected.mismatched:
        assert found.relative_l2 == pytest.approx(expected.relative_l2, rel=rel, abs=1e-6)
    assert found.cosine == pytest.approx(expected.cosine, rel=rel, abs=1e-6)
    assert found.norm_ratio == pytest.approx(expected.norm_ratio, rel=rel)
    assert found.max_abs == pytest.approx(expected.max_abs, rel=rel, abs=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("noise", [0.0, 1e-3, 1.0])
def test_agrees_with_the_exact_comparison(dtype: str, noise: float) -> None:
    generator = np.random.default_rng(0)
    one = generator.normal(size=(3, 50, 7)) * 20
    two = one + noise * generator.normal(size=one.shape) * 20
    assert_agrees(one.astype(dtype), two.astype(dtype))


@given(
    hnp.arrays(np.float32, (2, 5), elements=st.floats(-100, 100, width=32) | st.sampled_from([NAN, INF, -INF])),
    hnp.arrays(np.float32, (2, 5), elements=st.floats(-100, 100, width=32) | st.sampled_from([NAN, INF, -INF])),
)
def test_agrees_whatever_is_not_finite(one: np.ndarray, two: np.ndarray) -> None:
    tiny = np.finfo(np.float32).tiny ** 0.5
    one, two = (np.where(np.abs(item) < tiny, 0, item).astype(np.float32) for item in (one, two))
    assert_agrees(one, two, rel=1e-3)


@pytest.mark.parametrize(("one", "two", "mismatched"), [(NAN, NAN, 0), (INF, INF, 0), (INF, -INF, 1), (1, NAN, 1)])
def test_what_matches_without_being_finite(one: float, two: float, mismatched: int) -> None:
    error = of((np.array([1, one, 2], np.float32), np.array([1, two, 2], np.float32)))
    assert error.mismatched == mismatched
    assert error.relative_l2 == (INF if mismatched else 0.0)


def test_squares_that_overflow_single_precision() -> None:
    one = np.array([3e25, 1e20, -2e25], np.float32)
    two = one * np.float32(1.5)
    assert_agrees(one, two)
    assert of((one, two)).relative_l2 == pytest.approx(0.5, rel=1e-5)


def test_half_precision_is_added_up_in_single() -> None:
    """The sum of squares leaves float16 after 66 elements of 1,000."""
    one = np.full(5000, 1000, np.float16)
    assert of((one, one * np.float16(1.25))).relative_l2 == pytest.approx(0.25, rel=1e-3)


def test_batches_add_up() -> None:
    generator = np.random.default_rng(1)
    one, two = generator.normal(size=(2, 12, 5)).astype(np.float32)
    whole, parts = (
        of((one, two)),
        of(*((one[place : place + 3], two[place : place + 3]) for place in range(0, 12, 3))),
    )
    assert parts.count == whole.count
    assert parts.max_abs == whole.max_abs
    for name in ("relative_l2", "cosine", "norm_ratio"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-5)
    assert of((one, two), (one[:1], np.full_like(two[:1], NAN))).relative_l2 == INF


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [((0, 0), (0, 0), (0.0, 1.0, 1.0)), ((0, 0), (1, 0), (INF, 0.0, INF)), ((1, 0), (0, 0), (1.0, 0.0, 0.0))],
)
def test_zeros(one: tuple[float, ...], two: tuple[float, ...], expected: tuple[float, ...]) -> None:
    error = of((np.array(one, np.float32), np.array(two, np.float32)))
    assert (error.relative_l2, error.cosine, error.norm_ratio) == expected


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3, 2\)"):
        of((np.ones((2, 3)), np.ones((3, 2))))


def test_views_and_empty_arrays() -> None:
    one = np.random.default_rng(2).normal(size=(4, 6))
    assert of((one.T, one.T.copy())).relative_l2 == 0
    assert of((one[:0], one[:0])).relative_l2 == 0
