"""Rankings against stable sorts, scipy and direct loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair.ground.metrics import tensors
from conrepair.ground.metrics.ranks import (
    kendall_tau_union,
    overlap,
    rank_biased_overlap,
    top_k,
)


def random_lists(count, k, labels, seed=0):
    rng = np.random.default_rng(seed)
    pools = rng.permuted(np.tile(np.arange(labels), (2 * count, 1)), axis=1)[:, :k]
    return pools[:count], pools[count:]


def sorted_labels(row, k):
    """Sorts by (NaN last, score descending, label ascending), in plain Python."""
    keys = [(math.isnan(float(s)), 0.0 if math.isnan(float(s)) else -float(s)) for s in row]
    return sorted(range(len(row)), key=lambda label: (keys[label], label))[:k]


@pytest.mark.parametrize("classes", [2, 10, 127, 128, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.uint8, np.int8, np.bool_])
def test_top_k_is_a_stable_sort(classes, dtype):
    rng = np.random.default_rng(classes)
    # Few distinct values make ties at the border of the k likely.
    scores = rng.integers(0, 4, size=(40, classes)).astype(dtype)
    for k in {1, 2, min(5, classes), classes}:
        labels, values = top_k(scores, k)
        assert labels.dtype == np.int64
        assert values.dtype == scores.dtype
        assert labels.tolist() == [sorted_labels(row, k) for row in scores]
        assert (values == np.take_along_axis(scores, labels, axis=1)).all()


@pytest.mark.parametrize("classes", [6, 300])
def test_top_k_puts_nan_last_behind_minus_infinity(classes):
    rng = np.random.default_rng(1)
    special = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0])
    scores = rng.choice(special, size=(60, classes), p=[0.5, 0.02, 0.38, 0.04, 0.03, 0.03])
    scores[0] = math.nan
    scores[1] = math.nan
    scores[1, 4] = -math.inf
    for k in (1, 3, 5):
        labels, _ = top_k(scores, k)
        assert labels.tolist() == [sorted_labels(row, k) for row in scores]


@pytest.mark.parametrize("classes", [3, 200])
def test_top_k_at_the_ends_of_integers(classes):
    scores = np.zeros((1, classes), dtype=np.int8)
    scores[0, :3] = [-128, 127, 1]
    assert top_k(scores, 2)[0].tolist() == [[1, 2]]
    assert top_k(scores, classes)[0][0, -1] == 0
    scores = np.zeros((1, classes), dtype=np.uint64)
    scores[0, :3] = [2**64 - 2, 2**64 - 1, 5]
    assert top_k(scores, 3)[0].tolist() == [[1, 0, 2]]


def test_top_k_in_blocks(monkeypatch):
    scores = np.random.default_rng(2).integers(0, 9, size=(30, 200)).astype(np.float32)
    whole = top_k(scores, 5)[0]
    monkeypatch.setattr(tensors, "CHUNK_ELEMENTS", 700)
    assert (top_k(scores, 5)[0] == whole).all()


def test_top_k_arguments():
    assert top_k(np.zeros((0, 4)), 2)[0].shape == (0, 2)
    assert top_k(np.zeros((0, 400)), 2)[0].shape == (0, 2)
    for k in (0, 4):
        with pytest.raises(ValueError, match="k must"):
            top_k(np.zeros((2, 3)), k)
    with pytest.raises(ValueError, match="scores"):
        top_k(np.zeros(3), 1)
    with pytest.raises(ValueError, match="complex"):
        top_k(np.zeros((1, 3), dtype=complex), 1)


def test_overlap_counts_common_labels():
    a, b = random_lists(50, 5, 9)
    expected = [len(set(x) & set(y)) / 5 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_allclose(overlap(a, b), expected)


def rbo_loop(x, y, p):
    k = len(x)
    common = [len(set(x[:d]) & set(y[:d])) for d in range(1, k + 1)]
    total = sum(common[d - 1] / d * p**d for d in range(1, k + 1))
    return common[-1] / k * p**k + (1 - p) / p * total


@pytest.mark.parametrize("k", [1, 2, 5, 20])
@pytest.mark.parametrize("p", [0.5, 0.9, 0.98])
def test_rbo_agrees_with_a_loop(k, p):
    a, b = random_lists(40, k, k + 3, seed=k)
    expected = [rbo_loop(x, y, p) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_allclose(rank_biased_overlap(a, b, p), expected, atol=1e-12)


def test_rbo_weighs_the_top_most():
    a = np.array([[0, 1, 2, 3]] * 2)
    b = np.array([[1, 0, 2, 3], [0, 1, 3, 2]])
    top_swapped, bottom_swapped = rank_biased_overlap(a, b)
    assert top_swapped < bottom_swapped < 1


def tau_scipy(x, y):
    k, union = len(x), sorted(set(x) | set(y))
    ranks_x = [x.index(label) if label in x else k for label in union]
    ranks_y = [y.index(label) if label in y else k for label in union]
    if len(union) == 1:
        return 1.0
    return scipy.stats.kendalltau(ranks_x, ranks_y, variant="b").statistic


@pytest.mark.parametrize("k", [1, 2, 5, 12])
@pytest.mark.parametrize("extra", [0, 1, 4, 30])
def test_tau_agrees_with_scipy(k, extra):
    a, b = random_lists(60, k, k + extra, seed=k + extra)
    expected = [tau_scipy(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_allclose(kendall_tau_union(a, b), expected, atol=1e-12)


def test_tau_of_single_labels():
    assert kendall_tau_union(np.array([[3], [3]]), np.array([[3], [4]])).tolist() == [1.0, -1.0]


def test_blocks_do_not_change_the_result(monkeypatch):
    a, b = random_lists(33, 4, 7)
    functions = (overlap, rank_biased_overlap, kendall_tau_union)
    whole = [function(a, b) for function in functions]
    monkeypatch.setattr(tensors, "CHUNK_ELEMENTS", 150)
    for function, expected in zip(functions, whole, strict=True):
        np.testing.assert_array_equal(function(a, b), expected)


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 8), st.integers(0, 8), st.integers(0, 1000))
def test_properties_of_list_agreement(k, extra, seed):
    a, b = random_lists(5, k, k + extra, seed=seed)
    for function, low in ((overlap, 0), (rank_biased_overlap, 0), (kendall_tau_union, -1)):
        values = function(a, b)
        assert (values >= low - 1e-12).all()
        assert (values <= 1 + 1e-12).all()
        np.testing.assert_allclose(values, function(b, a), atol=1e-12)
        np.testing.assert_allclose(function(a, a), 1.0, atol=1e-12)
    disjoint = a + k + extra
    assert (overlap(a, disjoint) == 0).all()
    assert (rank_biased_overlap(a, disjoint) == 0).all()
    assert (kendall_tau_union(a, disjoint) < 0).all()


def test_list_arguments():
    good = np.array([[1, 2]])
    for function in (overlap, rank_biased_overlap, kendall_tau_union):
        assert function(np.zeros((0, 3), int), np.zeros((0, 3), int)).shape == (0,)
        with pytest.raises(ValueError, match="expected two"):
            function(good, np.array([[1, 2, 3]]))
        with pytest.raises(ValueError, match="expected two"):
            function(np.zeros((2, 0), int), np.zeros((2, 0), int))
        with pytest.raises(ValueError, match="twice"):
            function(good, np.array([[1, 1]]))
    for p in (0.0, 1.0):
        with pytest.raises(ValueError, match="p must"):
            rank_biased_overlap(good, good, p)
