"""How far right answers may be apart where nobody computes exact ones: what rounding does to ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conrepair.cases.case import Array, Case
from conrepair.generate.running import ModelSession, RefusedError
from conrepair.metrics.ulps import grid_of
from conrepair.truth.judging import distances
from conrepair.truth.noise import disturbed_feeds, with_noise

__all__ = ["spread"]

_MARGIN = 4.0  # of an estimate


def spread(case: Case, right: Mapping[str, Array]) -> dict[str, Array] | None:
    """Estimate it, element by element, by runs with all real results disturbed by some of their last place.

    Args:
        case: Any.
        right: ONNX Runtime's answers without optimizations.

    Returns:
        By output; infinite where disturbed answers jump that don't stand for reals. None where ONNX Runtime doesn't
        take the network with disturbances.
    """
    network, ones = with_noise(case.model)
    found = {name: _least(array) for name, array in right.items() if array.dtype.kind in "biuf"}
    try:
        session = ModelSession(network, [item.name for item in network.graph.output])
        for feeds in disturbed_feeds({**case.inputs, **ones}):
            answers = session.run(feeds)
            for name, allowed in found.items():
                found[name] = np.maximum(allowed, _moved(answers[name], right[name]))
    except RefusedError:
        return None
    return found


def _least(array: Array) -> Array:
    """Where nothing moves: some of the last place of what's real."""
    if array.dtype.kind != "f":
        return np.zeros(array.shape)
    with np.errstate(all="ignore"):
        return _MARGIN * grid_of(array.dtype).ulp(np.abs(array.astype(np.float64)))


def _moved(answer: Array, right: Array) -> Array:
    if answer.shape != right.shape:
        return np.full(right.shape, np.inf)
    with np.errstate(all="ignore"):
        apart = distances(answer, right)
    if right.dtype.kind != "f":
        return np.where(apart == 0, 0.0, np.inf)
    return np.where(np.isnan(apart), np.inf, _MARGIN * apart)
