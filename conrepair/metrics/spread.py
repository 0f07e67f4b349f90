"""Errors measured against how much values vary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.metrics.tensors import CHUNK_ELEMENTS

__all__ = ["HARDLY_ANY", "error_of_spread", "spread_between_samples"]

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
        array: First axis samples; what isn't a finite number is left out.

    Returns:
        0 where nothing varies; None where there's one sample, or nothing finite.
    """
    values = np.asarray(array).reshape(len(array), -1)
    if len(values) < 2:
        return None
    finite, total = np.ones(values.shape[1], bool), np.zeros(values.shape[1])
    for part in _portions(values):
        finite &= np.isfinite(part).all(axis=0)
        with np.errstate(invalid="ignore"):
            total += part.sum(axis=0)
    if not finite.any():
        return None
    mean, size, varying = total[finite] / len(values), 0.0, 0.0
    for part in _portions(values):
        kept = part[:, finite]
        size += float(np.vdot(kept, kept))
        kept = kept - mean
        varying += float(np.vdot(kept, kept))
    return float(np.sqrt(varying / size)) if size else 0.0


def _portions(values: npt.NDArray[Any]) -> Iterator[npt.NDArray[np.float64]]:
    """Rows in float64, few at a time."""
    rows = max(1, CHUNK_ELEMENTS // max(1, values.shape[1]))
    for start in range(0, len(values), rows):
        yield np.asarray(values[start : start + rows], np.float64)
