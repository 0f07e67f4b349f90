"""compare_tensors against naive numpy, scipy and exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.spatial.distance
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conrepair.ground.metrics import tensors
from conrepair.ground.metrics.tensors import compare_tensors, per_sample_relative_l2, relative_error

NAN, INF = math.nan, math.inf


def compare(reference, candidate, rtol=0.0, atol=0.0):
    return compare_tensors(np.asarray(reference), np.asarray(candidate), rtol=rtol, atol=atol)


def noisy_pair(shape, seed=0, noise=0.01):
    rng = np.random.default_rng(seed)
    reference = rng.normal(size=shape)
    return reference, reference + noise * rng.normal(size=shape)


def test_agrees_with_naive_formulas():
    reference, candidate = noisy_pair((7, 5, 3))
    error = compare(reference, candidate, rtol=0.01, atol=0.001)
    difference = candidate - reference
    assert error.count == reference.size
    assert error.max_abs == np.abs(difference).max()
    assert error.mean_abs == pytest.approx(np.abs(difference).mean(), rel=1e-12)
    assert error.relative_l2 == pytest.approx(np.linalg.norm(difference) / np.linalg.norm(reference), rel=1e-12)
    assert error.cosine == pytest.approx(
        1 - scipy.spatial.distance.cosine(reference.ravel(), candidate.ravel()), rel=1e-12
    )
    assert error.norm_ratio == pytest.approx(np.linalg.norm(candidate) / np.linalg.norm(reference), rel=1e-12)
    assert error.sqnr_db == pytest.approx(10 * np.log10((reference**2).sum() / (difference**2).sum()), rel=1e-12)
    assert error.exceeding == (~np.isclose(candidate, reference, rtol=0.01, atol=0.001)).sum()
    assert error.worst_index == np.unravel_index(np.abs(difference).argmax(), reference.shape)
    assert all(type(index) is int for index in error.worst_index)
    assert not error.within_tolerance
    assert compare(reference, candidate, atol=1.0).within_tolerance


def test_identical_tensors_have_no_error():
    reference, _ = noisy_pair((1000,))
    error = compare(reference, reference.copy())
    assert (error.max_abs, error.mean_abs, error.relative_l2) == (0.0, 0.0, 0.0)
    assert (error.cosine, error.norm_ratio, error.sqnr_db) == (1.0, 1.0, INF)
    assert error.within_tolerance


def test_norm_ratio_sees_what_the_cosine_is_blind_to():
    reference, _ = noisy_pair((50,))
    error = compare(reference, 2 * reference)
    assert (error.cosine, error.norm_ratio) == (1.0, 2.0)
    assert compare(reference, -reference).cosine == -1.0


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        ([0.0, 0.0], [0.0, 0.0], (0.0, 1.0, 1.0, INF)),
        ([0.0, 0.0], [0.0, 3.0], (INF, 0.0, INF, -INF)),
        ([0.0, 3.0], [0.0, 0.0], (1.0, 0.0, 0.0, 0.0)),
        ([], [], (0.0, 1.0, 1.0, INF)),
        ([NAN], [NAN], (0.0, 1.0, 1.0, INF)),
    ],
)
def test_zeros_and_nothing(reference, candidate, expected):
    error = compare(reference, candidate)
    assert (error.relative_l2, error.cosine, error.norm_ratio, error.sqnr_db) == expected


def test_empty_and_scalar():
    assert compare(np.zeros((3, 0)), np.zeros((3, 0))).worst_index == ()
    assert compare(np.zeros((3, 0)), np.zeros((3, 0))).count == 0
    error = compare(np.float32(1), np.float32(3))
    assert (error.count, error.max_abs, error.worst_index) == (1, 2.0, ())


def test_non_finite_values_are_counted_not_averaged():
    reference = np.array([1.0, NAN, INF, -INF, INF, 2.0, NAN, 4.0])
    candidate = np.array([1.0, NAN, INF, -INF, -INF, INF, 0.0, 4.5])
    error = compare(reference, candidate, atol=1.0)
    assert (error.nan_reference, error.nan_candidate) == (2, 1)
    assert (error.inf_reference, error.inf_candidate) == (3, 4)
    assert error.exceeding == 3
    assert error.worst_index == (4,)
    assert (error.count, error.max_abs, error.mean_abs) == (8, 0.5, 0.25)
    assert error.norm_ratio == pytest.approx(math.hypot(1, 4.5) / math.hypot(1, 4))


def test_matching_non_finite_values_are_within_tolerance():
    values = np.array([[NAN, INF], [-INF, 1.0]])
    error = compare(values, values.copy())
    assert error.within_tolerance
    assert error.worst_index == (1, 1)


def test_an_infinite_tolerance_does_not_hide_a_nan():
    assert compare([1.0, 2.0], [1.0, NAN], atol=INF).exceeding == 1


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e-310, 1.0, 1e150])
def test_extreme_scales_neither_overflow_nor_underflow(scale):
    error = compare(np.array([3.0, 4.0]) * scale, np.array([3.0, 2.0]) * scale)
    assert error.relative_l2 == pytest.approx(0.4, rel=1e-9)
    assert error.cosine == pytest.approx(17 / (5 * math.sqrt(13)), rel=1e-9)
    assert error.norm_ratio == pytest.approx(math.sqrt(13) / 5, rel=1e-9)
    assert error.sqnr_db == pytest.approx(10 * math.log10(25 / 4), rel=1e-9)
    assert error.mean_abs == pytest.approx(scale, rel=1e-9)


def test_scales_far_apart():
    error = compare([1e200, 0.0], [1e200, 1e-100])
    assert error.relative_l2 == pytest.approx(1e-300, rel=1e-9)
    assert error.sqnr_db == pytest.approx(6000.0)
    error = compare([1e-160], [1e160])
    assert error.relative_l2 == INF
    assert error.sqnr_db == pytest.approx(-6400.0)
    assert error.cosine == 1.0


def test_a_difference_beyond_float64():
    error = compare([1.7e308, 1.0], [-1.7e308, 1.0])
    assert error.max_abs == INF
    assert error.relative_l2 == pytest.approx(2.0)
    assert error.mean_abs == pytest.approx(1.7e308)
    assert (error.exceeding, error.worst_index) == (1, (0,))


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 59, 60, 61])
def test_chunks_do_not_change_the_result(monkeypatch, chunk):
    reference, candidate = noisy_pair((3, 4, 5), seed=3)
    reference[1, 2, 3] = candidate[1, 2, 3] = NAN
    reference[0, 0, 1] = 1e210
    whole = compare(reference, candidate, atol=0.005)
    monkeypatch.setattr(tensors, "CHUNK_ELEMENTS", chunk)
    parts = compare(reference, candidate, atol=0.005)
    for name, value in vars(whole).items():
        assert getattr(parts, name) == pytest.approx(value, rel=1e-12), name


def test_worst_index_in_a_later_chunk(monkeypatch):
    monkeypatch.setattr(tensors, "CHUNK_ELEMENTS", 4)
    reference, candidate = np.zeros((5, 3)), np.zeros((5, 3))
    candidate[3, 1] = candidate[4, 2] = -2.0
    candidate[0, 0] = 1.0
    assert compare(reference, candidate).worst_index == (3, 1)
    candidate[4, 0] = NAN
    candidate[4, 1] = INF
    assert compare(reference, candidate).worst_index == (4, 0)


def test_more_elements_than_a_chunk():
    count = tensors.CHUNK_ELEMENTS + 1
    reference = np.ones(count, dtype=np.float32)
    candidate = reference.copy()
    candidate[-1] = 3
    error = compare(reference, candidate, atol=0.5)
    assert (error.count, error.exceeding, error.worst_index) == (count, 1, (count - 1,))
    assert error.mean_abs == pytest.approx(2 / count)


def test_memmaps_and_strided_arrays(tmp_path):
    reference, candidate = noisy_pair((6, 8))
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path, values in zip(paths, (reference, candidate), strict=True):
        np.save(path, values)
    mapped = [np.load(path, mmap_mode="r") for path in paths]
    assert compare_tensors(*mapped, rtol=0, atol=0.01) == compare(reference, candidate, atol=0.01)
    strided = compare_tensors(mapped[0].T, mapped[1].T, rtol=0, atol=0.01)
    assert strided.worst_index == compare(reference, candidate).worst_index[::-1]
    assert strided == compare(reference.T.copy(), candidate.T.copy(), atol=0.01)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.float16, np.float32, np.bool_])
def test_dtypes(dtype):
    reference = np.array([0, 1, 1, 0]).astype(dtype)
    candidate = np.array([1, 1, 0, 0]).astype(dtype)
    error = compare(reference, candidate)
    assert (error.max_abs, error.mean_abs, error.exceeding) == (1.0, 0.5, 2)


def test_unsigned_and_half_precision_do_not_wrap():
    assert compare(np.array([255], np.uint8), np.array([0], np.uint8)).max_abs == 255.0
    assert compare(np.array([6e4], np.float16), np.array([-6e4], np.float16)).max_abs == 120000.0


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(3, 2\)"):
        compare(np.zeros((2, 3)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="complex"):
        compare(np.zeros(2, dtype=complex), np.zeros(2))
    for bad in (-1.0, NAN):
        with pytest.raises(ValueError, match="tolerances"):
            compare([1.0], [1.0], atol=bad)


finite = st.floats(allow_nan=False, allow_infinity=False)
shapes = hnp.array_shapes(max_dims=3, max_side=4)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.data())
def test_any_tensors_give_sane_numbers(data):
    shape = data.draw(shapes)
    arrays = hnp.arrays(np.float64, shape, elements=st.floats())
    reference, candidate = data.draw(arrays), data.draw(arrays)
    error = compare(reference, candidate, rtol=1e-3, atol=1e-3)
    assert not any(math.isnan(value) for value in vars(error).values() if value.__class__ is float)
    assert -1.0 <= error.cosine <= 1.0
    assert 0 <= error.exceeding <= error.count
    with np.errstate(over="ignore", invalid="ignore"):
        close = np.isclose(candidate, reference, rtol=1e-3, atol=1e-3, equal_nan=True)
    assert error.exceeding == (~close).sum()


@settings(derandomize=True, deadline=None)
@given(st.data())
def test_per_sample_agrees_with_the_whole(data):
    shape = data.draw(shapes)
    arrays = hnp.arrays(np.float64, shape, elements=finite)
    reference, candidate = data.draw(arrays), data.draw(arrays)
    errors = per_sample_relative_l2(reference, candidate)
    assert errors.shape == shape[:1]
    expected = [compare(r, c).relative_l2 for r, c in zip(reference, candidate, strict=True)]
    np.testing.assert_allclose(errors, expected, rtol=1e-9)


def test_per_sample_non_finite_and_chunks(monkeypatch):
    reference = np.array([[3.0, 4.0], [NAN, 1.0], [NAN, 1.0], [0.0, 0.0], [0.0, 0.0]])
    candidate = np.array([[3.0, 4.5], [NAN, 1.5], [2.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    expected = [0.1, 0.5, INF, 0.0, INF]
    for chunk in (1, 4, 1000):
        monkeypatch.setattr(tensors, "CHUNK_ELEMENTS", chunk)
        np.testing.assert_allclose(per_sample_relative_l2(reference, candidate), expected)


def test_what_cannot_be_compared_is_infinitely_wrong():
    one, two = noisy_pair((4, 3))
    assert relative_error(one, two) == compare(one, two).relative_l2
    assert relative_error(one, two.reshape(3, 4)) == INF
    two[0, 0] = NAN
    assert relative_error(one, two) == INF
    one[0, 0] = NAN
    assert relative_error(one, two) < 0.1


def test_per_sample_shapes():
    assert per_sample_relative_l2(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0,)
    assert per_sample_relative_l2(np.zeros((2, 0)), np.zeros((2, 0))).tolist() == [0.0, 0.0]
    assert per_sample_relative_l2(np.array([2, 4]), np.array([3, 4])).tolist() == [0.5, 0.0]
    with pytest.raises(ValueError, match="sample axis"):
        per_sample_relative_l2(np.float64(1), np.float64(1))
    with pytest.raises(ValueError, match="shapes"):
        per_sample_relative_l2(np.zeros((2, 1)), np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("one", "two", "difference"),
    [
        (np.int64(2**53), np.int64(2**53 + 1), 1),
        (np.int64(-(2**63)), np.int64(2**63 - 1), 2**64),
        (np.uint64(2**64 - 1), np.uint64(2**64 - 2), 1),
        (np.uint64(2**64 - 1), np.int64(-1), 2**64),
        (np.int64(-1), np.uint8(1), 2),
        (np.bool_(True), np.int64(2**60 + 1), 2**60),
    ],
)
def test_wide_integers_are_told_apart(one, two, difference):
    error = compare([one], [two])
    assert (error.max_abs, error.exceeding) == (difference, 1)
    assert per_sample_relative_l2(np.asarray([one]), np.asarray([two]))[0] == pytest.approx(
        difference / abs(float(one)), rel=1e-12
    )
    assert compare([one], [one]).exceeding == 0
