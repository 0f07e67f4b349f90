"""Answers of which one side has an activation that the other hasn't: softmax, log-softmax, sigmoid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.metrics.probabilities import softmax
from conrepair.metrics.spread import error_of_spread

__all__ = ["explain_final_activation"]

Array = npt.NDArray[Any]
_Float64 = npt.NDArray[np.float64]

_SMALLEST = 1e-30
_SAME = 1e-2  # relative error of answers that are the same


def explain_final_activation(reference: Array, candidate: Array) -> str | None:
    """Find out whether the answers differ by a softmax, log-softmax or sigmoid.

    Args:
        reference: The source's answers, [N, ..., C].
        candidate: The target's, of the same shape.

    Returns:
        The activation, in words; None when none explains the answers, or none is needed.
    """
    if reference.shape != candidate.shape or reference.ndim < 2 or reference.shape[-1] < 2:
        return None
    source, target = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    before = error_of_spread(source, target)
    if not (np.isfinite(source).all() and np.isfinite(target).all()) or before <= _SAME:
        return None
    found = []
    for name, function in _ACTIVATIONS.items():
        found.append((error_of_spread(function(source), target), name, "added"))
        found.append((error_of_spread(source, function(target)), name, "missing"))
    error, name, side = min(found)
    if error > _SAME:
        return None
    again = side == "added" and name != "log-softmax" and _has_gone_through(name, source)
    if again:
        what = f"the target applies {name} to answers that have gone through it already"
    elif side == "added":
        what = f"the target applies {name} to its answers, the source doesn't"
    else:
        what = f"the source applies {name} to its answers, the target doesn't"
    return f"{what}: relative error {before:.2g} -> {error:.2g} on {len(source)} samples"


def _has_gone_through(name: str, values: _Float64) -> bool:
    within = bool((values >= 0).all() and (values <= 1).all())
    return within and (name != "softmax" or bool(np.allclose(values.sum(axis=-1), 1, atol=1e-3)))


def _log_softmax(values: _Float64) -> _Float64:
    return np.asarray(np.log(np.maximum(softmax(values), _SMALLEST)))


def _sigmoid(values: _Float64) -> _Float64:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))


_ACTIVATIONS: dict[str, Callable[[_Float64], _Float64]] = {
    "softmax": softmax,
    "log-softmax": _log_softmax,
    "sigmoid": _sigmoid,
}
