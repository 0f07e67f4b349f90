"""Statistics against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from conrepair.ground.metrics.statistics import (
    TimeComparison,
    compare_times,
    corrected_times,
    time_statistics,
    wilson_interval,
)


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 10**6), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_wilson_agrees_with_scipy(trials, share, confidence):
    successes = round(share * trials)
    expected = scipy.stats.binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    low, high = wilson_interval(successes, trials, confidence)
    assert low == pytest.approx(expected.low, rel=1e-6, abs=1e-9)
    assert high == pytest.approx(expected.high, rel=1e-6, abs=1e-9)
    assert 0 <= low <= successes / trials <= high <= 1


def test_wilson_at_the_ends():
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert wilson_interval(0, 10)[0] == 0.0
    assert wilson_interval(10, 10)[1] == 1.0


@pytest.mark.parametrize("arguments", [(-1, 3), (4, 3), (0, -1), (1, 3, 0.0), (1, 3, 1.0)])
def test_wilson_arguments(arguments):
    with pytest.raises(ValueError, match="must be"):
        wilson_interval(*arguments)


def test_time_statistics_agree_with_numpy():
    seconds = np.random.default_rng(0).gamma(2.0, 0.01, size=101)
    summary = time_statistics(seconds)
    assert summary.count == 101
    assert summary.mean == pytest.approx(seconds.mean())
    assert summary.std == pytest.approx(seconds.std(ddof=1))
    assert summary.median == sorted(seconds)[50]
    assert summary.q05 == pytest.approx(sorted(seconds)[5])
    assert summary.q95 == pytest.approx(sorted(seconds)[95])
    assert (summary.minimum, summary.maximum) == (min(seconds), max(seconds))
    assert time_statistics(seconds.tolist()) == summary


def test_time_statistics_of_little():
    summary = time_statistics([0.25])
    assert (summary.count, summary.std, summary.q05, summary.q95) == (1, 0.0, 0.25, 0.25)
    with pytest.raises(ValueError, match="no times"):
        time_statistics([])
    with pytest.raises(ValueError, match="finite"):
        time_statistics([1.0, math.nan])


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 4), (8, 8), (8, 90), (9, 9), (30, 40)])
@pytest.mark.parametrize("decimals", [1, 12])
def test_compare_times_agrees_with_scipy(n, m, decimals):
    rng = np.random.default_rng(n)
    a, b = rng.gamma(2, size=n).round(decimals), rng.gamma(3, size=m).round(decimals)
    comparison = compare_times(a, b)
    expected = scipy.stats.mannwhitneyu(a, b)
    assert comparison.statistic == expected.statistic
    assert comparison.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert comparison.significant == (expected.pvalue < 0.05)
    assert comparison.ratio_of_medians == pytest.approx(np.median(b) / np.median(a))


def test_a_clear_slowdown_is_significant_and_symmetric():
    rng = np.random.default_rng(1)
    a, b = rng.normal(1.0, 0.01, 30), rng.normal(2.0, 0.01, 30)
    slower, faster = compare_times(a, b), compare_times(b, a)
    assert slower.significant
    assert faster.significant
    assert slower.ratio_of_medians == pytest.approx(1 / faster.ratio_of_medians)
    assert slower.ratio_of_medians == pytest.approx(2.0, rel=0.05)
    assert slower.p_value == pytest.approx(faster.p_value)


@pytest.mark.parametrize(
    ("a", "b", "ratio", "statistic"),
    [
        ([1.0] * 5, [1.0] * 5, 1.0, 12.5),
        ([1.0], [2.0], 2.0, 0.0),
        ([2.0], [1.0] * 50, 0.5, 50.0),
        ([0.0, 0.0], [0.0, 0.0], 1.0, 2.0),
        ([0.0], [1.0], math.inf, 0.0),
        ([], [1.0, 2.0], math.nan, 0.0),
        ([1.0], [], math.nan, 0.0),
        ([], [], math.nan, 0.0),
    ],
)
def test_compare_times_with_nothing_to_go_by(a, b, ratio, statistic):
    comparison = compare_times(a, b)
    assert comparison.ratio_of_medians == pytest.approx(ratio, nan_ok=True)
    assert (comparison.p_value, comparison.statistic, comparison.significant) == (
        1.0,
        statistic,
        False,
    )


def test_constant_but_different_times():
    comparison = compare_times([1.0] * 10, [2.0] * 10)
    assert comparison.significant
    assert comparison.ratio_of_medians == 2.0


def test_compare_times_refuses_non_finite_values():
    with pytest.raises(ValueError, match="finite"):
        compare_times([1.0, math.inf], [1.0, 2.0])


def with_p(p_value: float) -> TimeComparison:
    return TimeComparison(
        ratio_of_medians=1.0,
        p_value=p_value,
        statistic=0.0,
        significant=p_value < 0.05,
        corrected_p=p_value,
        least_p=0.0,
    )


def test_holm_by_hand():
    corrected = corrected_times([with_p(p) for p in (0.01, 0.04, 0.03, 0.005)])
    assert [item.corrected_p for item in corrected] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [item.significant for item in corrected] == [True, False, False, True]
    assert {item.comparisons for item in corrected} == {4}
    assert corrected_times([]) == []


@settings(derandomize=True, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_keeps_the_order_and_lies_between_no_correction_and_bonferronis(values):
    corrected = [item.corrected_p for item in corrected_times([with_p(p) for p in values])]
    for p, found in zip(values, corrected, strict=True):
        assert p <= found <= min(1.0, p * len(values)) or found == pytest.approx(max(corrected))
    order = sorted(range(len(values)), key=values.__getitem__)
    assert [corrected[index] for index in order] == sorted(corrected)
    assert min(corrected) == pytest.approx(min(1.0, min(values) * len(values)))


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 5), (8, 8)])
def test_the_least_p_value_is_that_of_samples_apart(n, m):
    comparison = compare_times(np.arange(n) + 1.0, np.arange(m) + 100.0)
    assert comparison.p_value == pytest.approx(comparison.least_p)
    assert comparison.decidable == (comparison.p_value < 0.05)
    many = corrected_times([comparison] * 1000)
    assert not many[0].decidable
    assert not many[0].significant


@pytest.mark.parametrize("count", [515, 20_000])
def test_times_of_many_batches(count):
    times = np.random.default_rng(0).gamma(2.0, 0.01, size=count)
    assert compare_times(times, 2 * times).significant
    assert not compare_times(times, times).significant
    assert compare_times(times, times).decidable


def test_one_time_decides_nothing():
    assert not compare_times([1.0], [2.0, 3.0]).decidable
