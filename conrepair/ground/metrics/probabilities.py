"""Class probabilities: making them, recognising them, and how far two of them are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.metrics.tensors import row_chunks

KL_EPSILON = 1e-12
"""Probabilities below this are raised to it before a logarithm is taken."""

_VALUE_SLACK = 1e-6
"""How far a probability may leave [0, 1] by rounding."""

_SUM_SLACK = 1e-3
"""How far the sum of a row may be from 1 by rounding; float16 outputs need about this much."""

_QUANTIZED_SUM_SLACK = 0.25
"""How far it may be from 1 at most, however coarse the quantization."""


def softmax(scores: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Turns scores into probabilities along the last axis.

    The largest score is subtracted first, so nothing overflows. A NaN or +inf in a row, or a row
    of nothing but -inf, makes NaNs of the whole row: it has no probabilities.

    Args:
        scores: [..., C] with C > 0, real.

    Returns:
        float64 of the same shape; the last axis sums to 1.

    Raises:
        ValueError: There is no class axis, or it is empty.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 0 or scores.shape[-1] == 0:
        raise ValueError(f"scores need a class axis that isn't empty, got shape {scores.shape}")
    with np.errstate(invalid="ignore", under="ignore"):
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=-1, keepdims=True), dtype=np.float64)


def looks_normalized(scores: npt.NDArray[Any], *, step: float = 0.0) -> bool:
    """Says whether scores are probabilities already (a softmax is part of the network).

    All values must lie in [0, 1] (with 1e-6 to spare and half a step above) and every row must sum
    to 1 within 1e-3. A quantized output is off by up to half a step per value: values that
    are not 0 may have been rounded up or down, values that are 0 can only have been rounded down.
    Hence a row's sum may be above 1 by half a step per value that isn't 0, and below 1 by half a
    step per value; but never by more than 0.25, or with many classes any sum would do.

    A row so flat that the quantization lost more than a quarter of its mass isn't recognised.

    Args:
        scores: [N, C], real.
        step: Quantization step (scale) of the output in the units of `scores`; 0 for floats.

    Returns:
        False also when C < 2, when there are no rows, and when a value isn't finite.

    Raises:
        ValueError: `scores` isn't a matrix, or the step is negative or NaN.
    """
    scores = np.asarray(scores)
    if scores.ndim != 2:
        raise ValueError(f"scores must be [N, C], got shape {scores.shape}")
    if not step >= 0:
        raise ValueError(f"the quantization step must be at least 0, got {step}")
    if scores.shape[0] == 0 or scores.shape[1] < 2:
        return False
    return all(_rows_normalized(np.asarray(scores[rows], np.float64), step) for rows in row_chunks(scores.shape))


def _rows_normalized(scores: npt.NDArray[np.float64], step: float) -> bool:
    if not np.isfinite(scores).all():
        return False
    if scores.min() < -_VALUE_SLACK or scores.max() > 1 + _VALUE_SLACK + 0.5 * step:
        return False
    excess = scores.sum(axis=1) - 1.0
    above = _SUM_SLACK + 0.5 * step * np.count_nonzero(scores, axis=1)
    below = _SUM_SLACK + 0.5 * step * scores.shape[1]
    within = (excess <= above) & (excess >= -below) & (np.abs(excess) <= _QUANTIZED_SUM_SLACK)
    return bool(within.all())


def kl_divergence(reference_p: npt.NDArray[Any], candidate_p: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Computes the Kullback-Leibler divergence of each candidate row from its reference row.

    Probabilities below `KL_EPSILON` (1e-12) are raised to it, so that a class the candidate rules
    out costs much but not everything; then the rows are scaled to sum to 1, since quantized rows
    don't and the divergence of what isn't a distribution may be negative.

    Args:
        reference_p: Probabilities [N, C] with C > 0.
        candidate_p: Probabilities [N, C].

    Returns:
        float64 [N], in nats; never negative, and finite where the inputs are. NaN where a row has
        a non-finite value.

    Raises:
        ValueError: The shapes differ, or aren't [N, C] with C > 0.
    """
    reference_p, candidate_p = np.asarray(reference_p), np.asarray(candidate_p)
    shape = reference_p.shape
    if shape != candidate_p.shape or len(shape) != 2 or shape[1] == 0:
        raise ValueError(f"expected two [N, C] arrays, got {shape} and {candidate_p.shape}")
    p, q = _clipped(reference_p), _clipped(candidate_p)
    with np.errstate(invalid="ignore"):
        divergence = (p * (np.log(p) - np.log(q))).sum(axis=1)
    return np.asarray(np.maximum(divergence, 0.0), dtype=np.float64)


def _clipped(probabilities: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    raised = np.maximum(np.asarray(probabilities, dtype=np.float64), KL_EPSILON)
    # An infinity of either sign isn't a probability: it must not end up as a harmless epsilon.
    raised = np.where(np.isinf(probabilities), np.nan, raised)
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float64)
