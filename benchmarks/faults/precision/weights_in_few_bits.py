"""Four bits for a whole tensor, where eight for each channel were meant."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import weights_fault
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array

__all__ = ["FAULT"]


def _rounded(array: Array) -> Array:
    step = np.abs(array).max() / 7 or 1
    return (np.round(array / step) * step).astype(array.dtype)


FAULT = weights_fault(
    "weights-in-few-bits",
    kind=Kind.PRECISION,
    provenance="fasterai#80, PocketFlow#249",
    repair="quantize each channel, with eight bits",
    compute=lambda array, _: _rounded(array),
    words="the weights of {name} are rounded to four bits",
)
