"""The Kruskal-Wallis test for every element of an array at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_CHUNK = 1 << 18  # values that are ranked at a time: about 50 MB of working memory


def kruskal_wallis(groups: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Test for each element whether groups of samples have the same distribution.

    Equal values get the mean of their ranks and the statistic is corrected for them, as in `scipy.stats.kruskal`,
    which takes one element at a time.

    Args:
        groups: Two or more arrays [samples, ...] of real numbers without NaN, alike but for the number of samples.

    Returns:
        The statistic H and the p-value (chi-squared with one degree of freedom less than there are groups), each of
        the shape behind the samples, float64. NaN where all values are the same: there's nothing to rank.

    Raises:
        ValueError: if there are fewer than two groups, one is empty, or their shapes differ.

    Source:
        Kruskal and Wallis, Use of Ranks in One-Criterion Variance Analysis, 1952, with the correction for ties;
        written as squared distances of mean ranks, which loses no digits.
    """
    if len(groups) < 2:
        raise ValueError(f"{len(groups)} groups; a test needs two or more")
    shape = groups[0].shape[1:]
    if any(group.shape[1:] != shape or not len(group) for group in groups):
        raise ValueError(f"groups of shapes {[group.shape for group in groups]} can't be compared")
    flat = [group.reshape(len(group), -1) for group in groups]
    sizes = [len(group) for group in flat]
    elements, total = flat[0].shape[1], sum(sizes)
    owner = np.repeat(np.arange(len(flat), dtype=np.int16), sizes)
    statistic = np.empty(elements)
    step = max(_CHUNK // total, 1)
    for start in range(0, elements, step):
        values = np.concatenate([group[:, start : start + step] for group in flat])
        statistic[start : start + step] = _statistic(np.ascontiguousarray(values.T), owner, sizes)
    return statistic.reshape(shape), _survival(statistic, len(flat) - 1).reshape(shape)


def _survival(statistic: npt.NDArray[np.float64], freedom: int) -> npt.NDArray[np.float64]:
    """Of the chi-squared distribution; the usual case of two groups by a function that is fifty times as fast."""
    import scipy.special  # a tenth of a second, which readers of results needn't wait

    if freedom == 1:
        return np.asarray(scipy.special.erfc(np.sqrt(statistic / 2)))
    return np.asarray(scipy.special.chdtrc(freedom, statistic))


def _statistic(
    values: npt.NDArray[Any], owner: npt.NDArray[np.int16], sizes: Sequence[int]
) -> npt.NDArray[np.float64]:
    """H of each row of `values`, whose columns belong to the groups that `owner` says."""
    total = values.shape[1]
    order = np.argsort(values, axis=1)
    first, last = _ties(np.ascontiguousarray(np.take_along_axis(values, order, axis=1).T))
    doubled = (first + last).astype(np.float64) + 2  # twice the mean rank
    whose = np.ascontiguousarray(owner.take(order).T)
    uncorrected = np.zeros(len(values))
    for group, size in enumerate(sizes):
        mean = np.einsum("se,se->e", doubled, whose == group) / (2 * size)
        uncorrected += 12 * size / (total * (total + 1)) * (mean - (total + 1) / 2) ** 2
    count = (last - first + 1).astype(np.float64)
    tied = np.einsum("se,se->e", count, count) - total  # each of t equal values adds t^2 - 1, together t^3 - t
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(tied < total**3 - total, uncorrected / (1 - tied / (total**3 - total)), np.nan))


def _ties(ordered: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Of each value of sorted columns the places of the first and the last that equal it."""
    new = ordered[1:] != ordered[:-1]
    first, last = (np.empty(ordered.shape, np.int32) for _ in range(2))
    first[0], last[-1] = 0, len(ordered) - 1
    for place, begins in enumerate(new, 1):
        first[place] = np.where(begins, np.int32(place), first[place - 1])
    for place, begins in reversed(list(enumerate(new))):
        last[place] = np.where(begins, np.int32(place), last[place + 1])
    return first, last
