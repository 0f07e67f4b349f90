"""A layer's weights have eight bits of mantissa."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.families import weights_fault
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array

__all__ = ["FAULT"]


def _cut(array: Array) -> Array:
    kept = array.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return kept.view(np.float32).astype(array.dtype)


FAULT = weights_fault(
    "weights-in-bfloat16",
    provenance="openvino#28032, ipex-llm#6473",
    repair="float32 for the layer",
    kind=Kind.PRECISION,
    compute=lambda array, _: _cut(array),
    words="the weights of {name} have the mantissa of bfloat16",
    real=True,
)
