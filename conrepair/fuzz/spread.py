"""How far right answers may be apart where nobody computes exact ones: what rounding does to ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conrepair.cases.case import Array, Case
from conrepair.generate.running import ModelSession, RefusedError
from conrepair.metrics.ulps import grid_of, is_real
from conrepair.truth.noise import furthest, with_noise

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
    numbers = {name: array for name, array in right.items() if array.dtype.kind in "biu" or is_real(array)}
    try:
        session = ModelSession(network, [item.name for item in network.graph.output])
        far = furthest(session.run, {**case.inputs, **ones}, numbers)
    except RefusedError:
        return None
    return {name: _allowed(array, far[name]) for name, array in numbers.items()}


def _allowed(right: Array, far: Array) -> Array:
    """Of what is real a multiple, and some of the last place where nothing moves; else all, where it does."""
    if not is_real(right):
        return np.where(far == 0, 0.0, np.inf)
    with np.errstate(all="ignore"):
        return _MARGIN * np.maximum(far, grid_of(right.dtype).ulp(np.abs(right.astype(np.float64))))
