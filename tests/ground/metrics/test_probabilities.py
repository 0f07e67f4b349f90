"""Probabilities against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conrepair.ground.metrics.probabilities import KL_EPSILON, kl_divergence, looks_normalized, softmax


def random_scores(count=50, classes=10, seed=0, spread=3.0):
    return spread * np.random.default_rng(seed).normal(size=(count, classes))


@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 3, 4), (0, 5)])
def test_softmax_agrees_with_scipy(shape):
    scores = 50 * np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(softmax(scores), scipy.special.softmax(scores, axis=-1), rtol=1e-12)


def test_softmax_is_stable_and_float64():
    assert softmax(np.array([[1e30, -1e30]], np.float32)).tolist() == [[1.0, 0.0]]
    assert softmax(np.array([[255, 0]], np.uint8)).dtype == np.float64
    assert softmax(np.array([[1.0, -math.inf]])).tolist() == [[1.0, 0.0]]
    assert np.isnan(softmax(np.array([[1.0, math.nan]]))).all()
    assert np.isnan(softmax(np.array([[1.0, math.inf]]))).all()


def test_softmax_needs_classes():
    for bad in (np.zeros((2, 0)), np.float64(1)):
        with pytest.raises(ValueError, match="class axis"):
            softmax(bad)


@settings(derandomize=True, deadline=None)
@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(-1e6, 1e6)), st.floats(-1e3, 1e3))
def test_softmax_properties(scores, shift):
    probabilities = softmax(scores)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(softmax(scores + shift), probabilities, atol=1e-8)
    assert looks_normalized(probabilities)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 10, 100])
def test_a_softmax_looks_normalized(dtype, classes):
    assert looks_normalized(softmax(random_scores(classes=classes)).astype(dtype))


@pytest.mark.parametrize(
    ("largest", "step", "normalized"),
    [(1.0, 0.0, True), (1 + 5e-7, 0.0, True), (1.0005, 0.0, False), (1.0045, 0.01, True), (1.0055, 0.01, False)],
)
def test_no_probability_is_above_one_by_more_than_rounding(largest, step, normalized):
    """Though the sum of the row could be right."""
    assert looks_normalized(np.array([[largest, 0.0]]), step=step) is normalized


@pytest.mark.parametrize("classes", [2, 10, 100, 1000])
def test_a_quantized_softmax_looks_normalized_with_its_step_only(classes):
    step = 1 / 256
    spread = 1.5 * math.log2(classes) + 1
    probabilities = softmax(random_scores(classes=classes, spread=spread))
    quantized = np.clip(np.round(probabilities / step), 0, 255) * step
    assert looks_normalized(quantized, step=step)
    assert not looks_normalized(quantized)


def test_what_does_not_look_normalized():
    step = 1 / 256
    assert not looks_normalized(random_scores())
    assert not looks_normalized(random_scores(), step=step)
    assert not looks_normalized(scipy.special.expit(random_scores()), step=step)
    assert not looks_normalized(np.full((3, 1000), 0.0), step=step)
    assert not looks_normalized(np.full((3, 1000), 2 * step), step=step)
    assert not looks_normalized(np.ones((3, 1)))
    assert not looks_normalized(np.zeros((0, 5)))
    assert not looks_normalized(np.array([[1.2, -0.2]]))
    assert not looks_normalized(np.array([[1.0, math.nan]]))
    assert not looks_normalized(np.array([[0.5, 0.5], [0.5, 0.6]]))
    # Two values can't be off by more than half a step each.
    assert not looks_normalized(np.array([[0.5, 0.52]]), step=step)


def test_looks_normalized_arguments():
    with pytest.raises(ValueError, match="scores"):
        looks_normalized(np.ones(3))
    for bad in (-1.0, math.nan):
        with pytest.raises(ValueError, match="step"):
            looks_normalized(np.ones((1, 2)), step=bad)


def test_kl_agrees_with_scipy():
    p, q = softmax(random_scores(seed=1)), softmax(random_scores(seed=2))
    divergence = kl_divergence(p, q)
    np.testing.assert_allclose(divergence, scipy.special.rel_entr(p, q).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(divergence, scipy.stats.entropy(p, q, axis=1), rtol=1e-6)


def test_kl_is_finite_where_a_class_is_ruled_out():
    divergence = kl_divergence(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    assert divergence[0] == pytest.approx(-math.log(KL_EPSILON), rel=1e-9)


@settings(derandomize=True, deadline=None)
@given(st.data())
def test_kl_is_finite_and_never_negative(data):
    arrays = hnp.arrays(np.float32, (3, 4), elements=st.floats(0, 1, width=32))
    p, q = data.draw(arrays), data.draw(arrays)
    divergence = kl_divergence(p, q)
    assert np.isfinite(divergence).all()
    assert (divergence >= 0).all()
    assert kl_divergence(p, p).tolist() == [0.0, 0.0, 0.0]


def test_kl_passes_on_non_finite_values():
    p = np.array([[0.5, 0.5], [math.nan, 1.0], [0.5, 0.5], [0.5, 0.5]])
    q = np.array([[0.5, 0.5], [0.5, 0.5], [math.inf, 0.5], [-math.inf, 0.5]])
    assert np.isnan(kl_divergence(p, q)).tolist() == [False, True, True, True]


def test_kl_arguments():
    for p, q in ((np.ones((1, 2)), np.ones((1, 3))), (np.ones(2), np.ones(2))):
        with pytest.raises(ValueError, match="expected two"):
            kl_divergence(p, q)
    assert kl_divergence(np.ones((0, 2)), np.ones((0, 2))).shape == (0,)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0.5, 0.549, 0.0], True),
        ([0.5, 0.552, 0.0], False),  # a 0 hasn't been rounded up
        ([0.4, 0.4, 0.274], True),
        ([0.5, 0.426, 0.0], True),  # it may have been rounded down
        ([0.5, 0.42, 0.0], False),
    ],
)
def test_half_a_step_of_each_value_that_may_be_off(row, expected):
    assert looks_normalized(np.array([row]), step=0.05) is expected
