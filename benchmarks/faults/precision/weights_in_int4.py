"""A layer's weights went through four bits, one scale for each group of 32."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import weights_fault
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array

__all__ = ["FAULT"]

_LEVELS, _GROUP = 7, 32


def _rounded(array: Array) -> Array:
    rows = array.reshape(len(array), -1)
    for start in range(0, rows.shape[1], _GROUP):
        part = rows[:, start : start + _GROUP]
        largest = np.abs(part).max(1, keepdims=True)
        step = np.where(largest == 0, 1, largest) / _LEVELS
        rows = np.concatenate([rows[:, :start], np.round(part / step) * step, rows[:, start + _GROUP :]], 1)
    return rows.reshape(array.shape).astype(array.dtype)


FAULT = weights_fault(
    "weights-in-int4",
    provenance="fasterai#80, PocketFlow#249",
    repair="float32 for the layer",
    kind=Kind.PRECISION,
    compute=lambda array, _: _rounded(array),
    words="the weights of {name} are rounded to four bits, in groups of 32",
    real=True,
)
