"""Errors measured against how much values vary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]

_LEAST = 1e-30  # sum of squares below which single precision may have lost some

HARDLY_ANY = 0.01  # of their size: outputs that vary by less between samples are one answer, counted many times


def error_of_spread(reference: npt.NDArray[Any], candidate: npt.NDArray[Any]) -> float:
    """||candidate - reference|| / ||reference||, the latter without its mean: flat values are not right ones.

    Args:
        reference: Any shape, real numbers.
        candidate: The same shape.

    Returns:
        Infinite where the reference doesn't vary.
    """
    reference, candidate = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    scale = float(np.linalg.norm(reference - reference.mean()))
    return float(np.linalg.norm(candidate - reference)) / scale if scale else np.inf


def spread_between_samples(array: npt.NDArray[Any]) -> float | None:
    """||array - its mean over samples|| / ||array||: how much of what a model gives depends on what it's given.

    Args:
        array: First axis samples; what isn't a finite number is left out, and texts are their places among all.

    Returns:
        0 where nothing varies; None where there's one sample, or nothing finite.
    """
    if len(array) < 2:
        return None
    values = np.asarray(array).reshape(len(array), -1)
    if values.dtype.kind == "U":
        values = np.unique(values, return_inverse=True)[1].reshape(values.shape)
    total = np.zeros(values.shape[1], np.result_type(values.dtype, np.float64))
    with np.errstate(invalid="ignore"):
        for row in values:
            total += row
    finite = np.isfinite(total)
    if not finite.any():
        return None
    kept = None if finite.all() else finite
    mean = total / len(values)
    single = values.dtype in (np.float16, np.float32)
    size, varying = _squares(values, mean, kept, np.float32 if single else total.dtype)
    if single and not _LEAST < size < math.inf:
        size, varying = _squares(values, mean, kept, np.float64)
    return math.sqrt(varying / size) if size else 0.0


def _squares(values: Values, mean: Values, kept: Values | None, dtype: npt.DTypeLike) -> tuple[float, float]:
    """Sums of the squares of what's kept, and of its distance from the mean."""
    size, varying, mean = 0.0, 0.0, mean.astype(dtype)
    for whole in values:
        row = whole.astype(dtype, copy=False)
        if kept is not None:
            row = row[kept]
        size += float(np.vdot(row, row).real)
        row = row - (mean if kept is None else mean[kept])
        varying += float(np.vdot(row, row).real)
    return size, varying
