"""A layer's result is stored in eight bits though nobody asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import inserted_behind
from benchmarks.faults.steps import Step
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


def _steps(dtype: np.dtype[Any]) -> Sequence[Step]:
    scale = [np.array(0.1, dtype), np.array(0, np.int8)]
    return [("QuantizeLinear", {}, scale), ("DequantizeLinear", {}, scale)]


FAULT = Fault(
    name="result-in-few-bits",
    kind=Kind.PRECISION,
    provenance="openvino#28032, tensorflow#38062",
    repair="float32 for the layer",
    native=inserted_behind(
        ("Conv", "MatMul"),
        lambda _: _steps(np.dtype(np.float32)),
        "quantized",
        "{name} is stored as int8 in steps of 0.1",
    ),
)
