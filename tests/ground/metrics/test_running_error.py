"""Sums in the tensors' own precision against `compare_tensors`, which is exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conrepair.ground.metrics.running_error import RunningError, error_of
from conrepair.ground.metrics.tensors import compare_tensors

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


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
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


def test_tensors_of_nothing_but_numbers_that_stand_for_infinity_are_compared() -> None:
    one = np.full(40, 1e38)
    assert of((one, one * 1.5)).error == pytest.approx(0.5)


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


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.bool_, np.str_])
def test_what_is_no_real_number_is_the_same_or_is_not(dtype: type) -> None:
    one = np.array([0, 1, 1, 0] * 25).astype(dtype)
    two = one.copy()
    two[[3, 50, 99]] = np.array([1, 0, 1]).astype(dtype)
    assert of((one, one)).error == 0.0
    assert of((one, two)).error == pytest.approx(math.sqrt(0.03))


def test_token_ids_do_not_become_close_by_being_large() -> None:
    ids = np.array([[30000, 2, 3, 4]])
    assert of((ids, ids + np.array([[2, 0, 0, 0]]))).error == 0.5


def scores(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def masked(value: float, share: float, size: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and other scores, both behind an additive mask that leaves a share of them."""
    mask = np.where(np.random.default_rng(9).random((2, 4, size, size)) < share, 0.0, value).astype(np.float32)
    return scores(*mask.shape) + mask, scores(*mask.shape, seed=1) + mask


@pytest.mark.parametrize("value", [-1e4, -1e9, -1e30, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9, 0.999])
def test_what_an_additive_mask_hides_is_seen(value: float, share: float) -> None:
    one, two = masked(value, share)
    assert of((one, two)).error > 1.0
    assert of((one, one)).error == 0.0
    assert of((one, two.astype(np.float64))).error > 1.0
    if value > -1e30:
        assert of((one, two)).relative_l2 < 0.05  # all that's seen without


@pytest.mark.parametrize("outlier", [1e3, 1e5, 1e7])
def test_what_outlier_channels_hide_is_seen(outlier: float) -> None:
    one, two = scores(1, 50, 64), scores(1, 50, 64, seed=1)
    for array in (one, two):
        array[..., 7] = scores(1, 50, seed=2) * outlier
    assert of((one, two)).relative_l2 < 0.05
    assert of((one, two)).error > 1.0


@pytest.mark.parametrize("offset", [50.0, 1e2, 1e3, -1e3])
def test_what_an_offset_of_all_hides_is_seen(offset: float) -> None:
    one, two = scores(40, 100) + np.float32(offset), scores(40, 100, seed=1) + np.float32(offset)
    assert of((one, two)).relative_l2 < 0.05
    assert of((one, two)).error > 1.0


def test_what_an_offset_has_rounded_away_is_no_difference() -> None:
    """1e7 in single precision leaves whole numbers: nobody can say what was added to it."""
    one, two = scores(40, 100) + np.float32(1e7), scores(40, 100, seed=1) + np.float32(1e7)
    assert of((one, two)).error < 1e-6


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("draw", ["normal", "relu", "uniform", "laplace"])
def test_the_usual_tensors_have_no_hidden_part(draw: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    drawn = {"normal": generator.normal, "relu": generator.normal, "uniform": generator.random}
    one = drawn.get(draw, generator.laplace)(size=(3, 40, 41)).astype(np.float32)
    one = np.maximum(one, 0) if draw == "relu" else one
    error = of((one, (one * (1 + 1e-6 * generator.normal(size=one.shape))).astype(np.float32)))
    assert error.hidden == 0.0


@given(st.integers(0, 10_000), st.sampled_from([1.0, 1e3, 1e-3]))
def test_rounding_is_no_larger_in_what_is_hidden_than_elsewhere(seed: int, scale: float) -> None:
    """A body's own rounding is in its own last places, whatever stands beside it."""
    generator = np.random.default_rng(seed)
    one = (generator.normal(size=4000) * scale).astype(np.float32)
    one[: int(generator.integers(1, 2000))] = -1e9
    two = one * (1 + np.float32(2**-22) * generator.integers(-1, 2, one.size).astype(np.float32))
    assert of((one, two)).error < 1e-6


def test_all_elements_count_however_many() -> None:
    """What's computed in pieces is of the last piece as of the first."""
    one = np.ones(600_001, np.float32)
    for place in (0, 300_000, 600_000):
        two = one.copy()
        two[place] = 1001.0
        error = of((one, two))
        assert error.count == one.size
        assert error.max_abs == 1000.0
        assert error.relative_l2 == pytest.approx(1000 / np.sqrt(one.size), rel=1e-4)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_against_real_numbers_are_not_rounded(dtype: type) -> None:
    found = RunningError()
    found.add(np.array([2.0**24]), np.array([2**24 + 1], dtype))
    assert found.max_abs == 1


def test_complex_numbers_are_pairs_of_real_ones() -> None:
    found = RunningError()
    found.add(np.complex64([3 + 4j, 0]), np.complex64([3 + 4j, 2j]))
    assert found.relative_l2 == pytest.approx(0.4)
    assert (found.max_abs, found.peak) == (2, 4)


def test_what_says_nothing_is_counted() -> None:
    found = RunningError()
    assert (found.count, found.untold, found.mismatched) == (0, 0, 0)
    found.add(np.array([1.0, np.nan, np.inf, 2.0, np.nan]), np.array([1.0, np.nan, np.inf, 3.0, 4.0]))
    assert (found.count, found.untold, found.mismatched) == (5, 2, 1)


def test_sums_of_half_precision_keep_more_digits_than_it_has() -> None:
    one, two = np.random.default_rng(0).normal(size=(2, 3001)).astype(np.float16)
    found = RunningError()
    found.add(one, two)
    assert found.reference == pytest.approx(np.sum(one.astype(float) ** 2), rel=1e-5)
    assert found.product == pytest.approx(np.sum(one.astype(float) * two), rel=1e-4)


def test_small_numbers_have_an_error_too() -> None:
    """Squares of numbers below 1e-19 are zero in float32."""
    values = np.linspace(1e-38, 3e-38, 100, dtype=np.float32)
    assert error_of(values, values * np.float32(1.5)) == pytest.approx(0.5, rel=1e-3)
