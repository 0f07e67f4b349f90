"""Noise on all weights of a layer, as a wrong dequantization leaves it."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import weights_fault
from conrepair.ground.graph.layer_graph import Array

__all__ = ["FAULT"]


def _disturbed(array: Array, generator: np.random.Generator) -> Array:
    noise: Array = generator.normal(0, 0.1 * float(array.std()) + 1e-6, array.shape).astype(array.dtype)
    return array + noise


FAULT = weights_fault(
    "weights-disturbed",
    provenance="tensorflow#60903",
    repair="the weights",
    compute=_disturbed,
    words="the weights of {name} are disturbed by a tenth of their spread",
)
