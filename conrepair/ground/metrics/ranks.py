"""Rankings of class scores: who is on top, and how much two top-k lists agree.

A list is a row of k distinct labels, best first. Everything is vectorized over the rows; work that
needs memory quadratic in k goes through blocks of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.metrics.tensors import row_chunks

_PARTITION_FROM = 128
"""Classes from which a partition is faster than sorting whole rows."""

_Labels = npt.NDArray[np.int64]


def top_k(scores: npt.NDArray[Any], k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Gives the k largest scores of each row, best first.

    Ties go to the lower label, NaN comes last (behind -inf): the answer depends on nothing but
    the scores.

    Args:
        scores: [N, C], bool, integer or float.
        k: Between 1 and C.

    Returns:
        The labels, int64 [N, k], and their scores, [N, k] with the dtype of `scores`.

    Raises:
        ValueError: `scores` isn't a matrix of real numbers, or k is out of range.
    """
    scores = np.asarray(scores)
    if scores.ndim != 2 or scores.dtype.kind not in "biuf":
        raise ValueError(f"scores must be real [N, C], got {scores.dtype} {scores.shape}")
    if not 1 <= k <= scores.shape[1]:
        raise ValueError(f"k must be between 1 and {scores.shape[1]} classes, got {k}")
    labels = np.empty((scores.shape[0], k), dtype=np.int64)
    for rows in row_chunks(scores.shape):
        labels[rows] = _smallest(_descending_keys(scores[rows]), k)
    return labels, np.take_along_axis(scores, labels, axis=1)


def overlap(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Gives the share of labels that two top-k lists have in common, whatever their order.

    Args:
        a: Labels [N, k], distinct within a row.
        b: Labels [N, k], distinct within a row.

    Returns:
        float64 [N], from 0 to 1.

    Raises:
        ValueError: The shapes differ, k is 0, or a row repeats a label.
    """
    a, b = _checked_lists(a, b)
    return np.asarray((_ranks_in(a, b) < a.shape[1]).mean(axis=1), dtype=np.float64)


def rank_biased_overlap(
    a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], p: float = 0.9
) -> npt.NDArray[np.float64]:
    """Gives the extrapolated rank-biased overlap of two top-k lists.

    RBO_ext = (X_k / k) p^k + (1 - p)/p * sum over d = 1..k of (X_d / d) p^d, where X_d labels are
    common to the first d places of both lists. Differences near the top weigh most.

    Source: W. Webber, A. Moffat, J. Zobel, "A Similarity Measure for Indefinite Rankings", ACM
    TOIS 28(4), 2010, equation 32, for lists of equal length.

    Args:
        a: Labels [N, k], distinct within a row.
        b: Labels [N, k], distinct within a row.
        p: Persistence, between 0 and 1 exclusive; the smaller, the more the top weighs.

    Returns:
        float64 [N], from 0 (disjoint) to 1 (identical).

    Raises:
        ValueError: The shapes differ, k is 0, a row repeats a label, or p is out of range.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1 exclusive, got {p}")
    a, b = _checked_lists(a, b)
    count, k = a.shape
    # A label enters the overlap at the depth where the later of the two lists has it.
    enters_at = np.maximum(_ranks_in(a, b), np.arange(k))
    slots = np.arange(count)[:, None] * (k + 1) + enters_at
    entering = np.bincount(slots.ravel(), minlength=count * (k + 1)).reshape(count, k + 1)
    depths = np.arange(1, k + 1)
    agreement = entering[:, :k].cumsum(axis=1) / depths
    weights = (1 - p) / p * p**depths
    extrapolated = agreement[:, -1] * p**k + (agreement * weights).sum(axis=1)
    return np.asarray(np.clip(extrapolated, 0.0, 1.0), dtype=np.float64)


def kendall_tau_union(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Gives Kendall's tau-b between two top-k lists, over the union of their labels.

    A label that a list lacks is ranked behind all that it has, tied with the others it lacks.
    tau-b = (concordant - discordant) / sqrt(pairs untied in a * pairs untied in b).

    Source: M. G. Kendall, "The Treatment of Ties in Ranking Problems", Biometrika 33(3), 1945; the
    extension to top-k lists follows R. Fagin, R. Kumar, D. Sivakumar, "Comparing Top k Lists",
    SIAM J. Discrete Math. 17(1), 2003.

    Args:
        a: Labels [N, k], distinct within a row.
        b: Labels [N, k], distinct within a row.

    Returns:
        float64 [N], from -1 to 1: 1 for identical lists, negative for disjoint ones. With k = 1,
        1 when the labels agree and -1 when they differ.

    Raises:
        ValueError: The shapes differ, k is 0, or a row repeats a label.
    """
    a, b = _checked_lists(a, b)
    taus = np.empty(a.shape[0], dtype=np.float64)
    for rows in row_chunks((a.shape[0], (2 * a.shape[1]) ** 2)):
        taus[rows] = _tau_of_block(a[rows], b[rows])
    return taus


def _tau_of_block(a: _Labels, b: _Labels) -> npt.NDArray[np.float64]:
    count, k = a.shape
    places = np.broadcast_to(np.arange(k), (count, k))
    b_in_a = _ranks_in(b, a)
    # 2k slots per row: the labels of a, then those of b, of which the ones also in a are unused.
    used = np.concatenate([np.ones((count, k), dtype=np.bool_), b_in_a == k], axis=1)
    signs_a = _pair_signs(np.concatenate([places, b_in_a], axis=1), used)
    signs_b = _pair_signs(np.concatenate([_ranks_in(a, b), places], axis=1), used)
    # Sums over ordered pairs are twice those over pairs, above and below the line alike.
    balance = np.einsum("nij,nij->n", signs_a, signs_b)
    untied_a = np.abs(signs_a).sum(axis=(1, 2))
    untied_b = np.abs(signs_b).sum(axis=(1, 2))
    # No pair at all is left only when k = 1 and the labels agree.
    alone = untied_a == 0
    return np.where(alone, 1.0, balance / np.sqrt(np.where(alone, 1, untied_a * untied_b)))


def _pair_signs(ranks: _Labels, used: npt.NDArray[np.bool_]) -> _Labels:
    signs = np.sign(ranks[:, :, None] - ranks[:, None, :])
    return np.asarray(signs * (used[:, :, None] & used[:, None, :]), dtype=np.int64)


def _ranks_in(labels: _Labels, ranking: _Labels) -> _Labels:
    """Gives the place (from 0) of each label in the ranking of its row; k where it is absent."""
    count, k = labels.shape
    ranks = np.empty((count, k), dtype=np.int64)
    for rows in row_chunks((count, k * k)):
        equal = labels[rows, :, None] == ranking[rows, None, :]
        ranks[rows] = np.where(equal.any(axis=2), equal.argmax(axis=2), k)
    return ranks


def _checked_lists(
    a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim != 2 or a.shape != b.shape or a.shape[1] == 0:
        raise ValueError(f"expected two [N, k] label arrays with k > 0, got {a.shape}, {b.shape}")
    for lists in (a, b):
        ordered = np.sort(lists, axis=1)
        if (ordered[:, 1:] == ordered[:, :-1]).any():
            raise ValueError("a top-k list can't have the same label twice")
    return a, b


def _descending_keys(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Gives keys whose ascending order is the descending order of the scores, NaN last."""
    # The complement, unlike the negation, also reverses unsigned integers and the smallest int.
    return -scores if scores.dtype.kind == "f" else ~scores


def _smallest(keys: npt.NDArray[Any], k: int) -> _Labels:
    """Gives the columns of the k smallest keys of each row, in stable order."""
    if keys.shape[1] < _PARTITION_FROM or k == keys.shape[1]:
        return np.asarray(np.argsort(keys, axis=1, kind="stable")[:, :k], dtype=np.int64)
    columns = _smallest_unordered(keys, k)
    order = np.argsort(np.take_along_axis(keys, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def _smallest_unordered(keys: npt.NDArray[Any], k: int) -> _Labels:
    """Gives the columns of the k smallest keys of each row, in ascending order of column."""
    # argpartition would pick any of the keys tied at the border, so only the border is taken from
    # the partition and the tied keys are admitted from the left.
    border = np.partition(keys, k - 1, axis=1)[:, k - 1 : k]
    before, tied = keys < border, keys == border
    if keys.dtype.kind == "f":
        nan, nan_border = np.isnan(keys), np.isnan(border)
        before |= nan_border & ~nan
        tied |= nan_border & nan
    places_left = k - before.sum(axis=1, keepdims=True)
    chosen = before | (tied & (tied.cumsum(axis=1) <= places_left))
    return np.nonzero(chosen)[1].astype(np.int64).reshape(keys.shape[0], k)
