"""Errors measured against how much values vary."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["error_of_spread"]


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
