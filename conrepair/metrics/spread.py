"""Errors measured against how much values vary."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

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
    values = np.asarray(array, np.float64).reshape(len(array), -1)
    values = values[:, np.isfinite(values).all(axis=0)]
    if len(values) < 2 or not values.size:
        return None
    size = float(np.linalg.norm(values))
    return float(np.linalg.norm(values - values.mean(axis=0))) / size if size else 0.0
