"""Gradients that no rounding explains, or that aren't there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.fuzz.suspicion import GRADIENT, Suspicion
from conrepair.fuzz.training import Training
from conrepair.metrics.ulps import grid_of
from conrepair.truth.judging import distances, worst_of

__all__ = ["gradients"]


def gradients(training: Training) -> Iterator[Suspicion]:
    """Suspect gradients further from those in float64 than right ones may be, and a backward pass that fails.

    Args:
        training: Any.
    """
    if training.ended is not None and training.ended.suspicion is not None:
        yield training.ended.suspicion
    for name, given in training.given.items():
        exact = training.exact[name]
        if given.shape != exact.shape:
            words = f"the gradient of {name} has the shape {list(given.shape)} and should have {list(exact.shape)}"
            yield Suspicion("shape", GRADIENT, message=words, output=name)
            continue
        grid = grid_of(given.dtype)
        allowed = training.allowed[name] + np.where(np.isfinite(exact), grid.ulp(exact), 0) + 2.0**grid.lowest
        errors = distances(given, exact)
        with np.errstate(all="ignore"):
            over = np.where(np.isinf(allowed), 0.0, errors / allowed)
        if not (over > 1).any():
            continue
        place = worst_of(over)
        values = float(given[place]), float(exact[place]), float(allowed[place])
        words = f"the gradient of {name}{list(place) if place else ''} is {values[0]:.9g}, not {values[1]:.9g}"
        yield Suspicion(GRADIENT, GRADIENT, "", words, "", name, place, *values, float(over[place]))
