"""Confidence in proportions, and statistics of measured times."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_FEW = 8  # times, up to which the distribution of U is counted out
SIGNIFICANCE_LEVEL = 0.05
"""A difference in times is significant when its p-value is below this."""


@dataclass(frozen=True, kw_only=True)
class TimeStatistics:
    """Summary of measured times, in seconds (the count aside).

    Attributes:
        count: Number of measurements.
        mean: Arithmetic mean.
        std: Sample standard deviation (divided by count - 1); 0 for a single measurement.
        median: Median.
        q05: 5% quantile, linearly interpolated.
        q95: 95% quantile, linearly interpolated.
        minimum: Shortest time.
        maximum: Longest time.
    """

    count: int
    mean: float
    std: float
    median: float
    q05: float
    q95: float
    minimum: float
    maximum: float


@dataclass(frozen=True, kw_only=True)
class TimeComparison:
    """Whether two samples of times differ.

    Attributes:
        ratio_of_medians: median(b) / median(a): above 1, b is slower. 1 when both medians are 0,
            inf when only a's is, NaN when a sample is empty.
        p_value: Of the two-sided Mann-Whitney U test; 1 when the test has nothing to go by.
        statistic: U of sample a: the pairs in which a took longer, ties counting half.
        significant: Whether the corrected p-value is below `SIGNIFICANCE_LEVEL`.
        corrected_p: The p-value, corrected for the comparisons that were made along with this one.
        least_p: What the p-value of samples of these sizes can be at the least.
        comparisons: How many were made, this one included.
    """

    ratio_of_medians: float
    p_value: float
    statistic: float
    significant: bool
    corrected_p: float
    least_p: float
    comparisons: int = 1

    @property
    def decidable(self) -> bool:
        """Whether there are measurements enough for any difference to be significant."""
        return self.least_p * self.comparisons < SIGNIFICANCE_LEVEL


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Gives the Wilson score interval of a proportion.

    Unlike the normal approximation it stays inside [0, 1] and is sound for few trials and for
    proportions near 0 and 1.

    Source: E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference",
    JASA 22, 1927 (without continuity correction).

    Args:
        successes: From 0 to `trials`.
        trials: At least 0.
        confidence: Between 0 and 1 exclusive.

    Returns:
        Lower and upper end; (0, 1) without trials.

    Raises:
        ValueError: An argument is out of range.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"successes must be from 0 to {trials} trials, got {successes}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1 exclusive, got {confidence}")
    if trials == 0:
        return 0.0, 1.0
    z = statistics.NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / trials
    denominator = 1 + z * z / trials
    center = (share + z * z / (2 * trials)) / denominator
    spread = math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    half_width = z * spread / denominator
    # At the ends the formula gives 0 and 1 but for rounding.
    low = 0.0 if successes == 0 else max(0.0, center - half_width)
    high = 1.0 if successes == trials else min(1.0, center + half_width)
    return low, high


def time_statistics(seconds: Sequence[float] | npt.NDArray[Any]) -> TimeStatistics:
    """Summarizes measured times.

    Args:
        seconds: At least one finite value, in seconds.

    Returns:
        The summary.

    Raises:
        ValueError: There are no values, or one isn't finite.
    """
    times = _checked_times(seconds)
    if times.size == 0:
        raise ValueError("no times to summarize")
    q05, median, q95 = np.quantile(times, [0.05, 0.5, 0.95])
    return TimeStatistics(
        count=times.size,
        mean=float(times.mean()),
        std=float(times.std(ddof=1)) if times.size > 1 else 0.0,
        median=float(median),
        q05=float(q05),
        q95=float(q95),
        minimum=float(times.min()),
        maximum=float(times.max()),
    )


def compare_times(a: Sequence[float] | npt.NDArray[Any], b: Sequence[float] | npt.NDArray[Any]) -> TimeComparison:
    """Tests whether two samples of times differ, by the two-sided Mann-Whitney U test.

    The test compares ranks, so a single outlier (a scheduler's hiccup) can't decide it. Where it
    isn't defined, because a sample has fewer than two values or all values are equal, p is 1.

    Source: H. B. Mann, D. R. Whitney, Annals of Mathematical Statistics 18(1), 1947.

    Args:
        a: Finite times in seconds, [n].
        b: Finite times in seconds, [m].

    Returns:
        The comparison.

    Raises:
        ValueError: A value isn't finite.
    """
    first, second = _checked_times(a), _checked_times(b)
    statistic, p_value = mann_whitney(first, second)
    return TimeComparison(
        ratio_of_medians=_ratio_of_medians(first, second),
        p_value=p_value,
        statistic=statistic,
        significant=p_value < SIGNIFICANCE_LEVEL,
        corrected_p=p_value,
        least_p=mann_whitney(np.arange(first.size), first.size + np.arange(second.size))[1],  # all below all
    )


def corrected_times(comparisons: Sequence[TimeComparison]) -> list[TimeComparison]:
    """Corrects p-values for their number, so that all equal pairs look equal with 95 %.

    Source: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6,
    1979. It holds for tests that depend on one another, as those of overlapping pairs do.

    Args:
        comparisons: That are looked at together.

    Returns:
        The same, in order, with `corrected_p`, `comparisons` and `significant` of the whole.
    """
    count = len(comparisons)
    order = sorted(range(count), key=lambda index: comparisons[index].p_value)
    corrected = [0.0] * count
    largest = 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (count - place) * comparisons[index].p_value))
        corrected[index] = largest
    return [
        dataclasses.replace(item, corrected_p=p_value, comparisons=count, significant=p_value < SIGNIFICANCE_LEVEL)
        for item, p_value in zip(comparisons, corrected, strict=True)
    ]


def mann_whitney(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> tuple[float, float]:
    """U of the first sample, and the two-sided p-value; 0 and 1 without a pair of times.

    As `scipy.stats.mannwhitneyu` has it, whose import would take most of the time of a small comparison: exact where
    a sample is small and no values are equal, else by the normal distribution, corrected for ties and continuity.
    """
    count, others = sorted((first.size, second.size))
    if count == 0:
        return 0.0, 1.0
    ordered = np.sort(second)
    below, up_to = (np.searchsorted(ordered, first, side) for side in ("left", "right"))
    statistic = float(np.sum(below) + np.sum(up_to)) / 2
    if count == 1:
        return statistic, 1.0
    _, equal = np.unique(np.concatenate([first, second]), return_counts=True)
    larger = max(statistic, count * others - statistic)
    if count <= _FEW and np.all(equal == 1):
        ways = _ways(count, others)
        return statistic, min(1.0, 2.0 * float(sum(ways[int(larger) :]) / sum(ways)))
    total = count + others
    ties = float(np.sum(equal**3.0 - equal)) / (total * (total - 1))
    spread = math.sqrt(count * others / 12 * max(total + 1 - ties, 0.0))
    if spread == 0.0:
        return statistic, 1.0
    score = (larger - count * others / 2 - 0.5) / spread
    return statistic, min(1.0, math.erfc(score / math.sqrt(2.0)))


def _ways(count: int, others: int) -> list[int]:
    """In how many orders of two samples U is 0, 1, ... count * others: the coefficients of a Gaussian binomial."""
    ways = np.zeros(count * others + 1, dtype=object)
    ways[0] = 1
    for factor in range(1, count + 1):
        shift = others + factor  # times 1 - x^shift, then over 1 - x^factor
        ways[shift:] -= ways[: max(ways.size - shift, 0)].copy()
        for place in range(factor):
            ways[place::factor] = np.add.accumulate(ways[place::factor])
    return list(ways)


def _ratio_of_medians(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    if first.size == 0 or second.size == 0:
        return math.nan
    below, above = float(np.median(first)), float(np.median(second))
    if below == 0.0:
        return 1.0 if above == 0.0 else math.inf
    return above / below


def _checked_times(seconds: Sequence[float] | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    times = np.asarray(seconds, dtype=np.float64).ravel()
    if not np.isfinite(times).all():
        raise ValueError("times must be finite")
    return times
