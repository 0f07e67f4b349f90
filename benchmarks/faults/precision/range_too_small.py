"""A layer's result saturates at a range that was calibrated on other data."""

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
    return [("Clip", {}, [np.array(bound, dtype) for bound in (-0.3, 0.3)])]


FAULT = Fault(
    name="range-too-small",
    kind=Kind.PRECISION,
    provenance="onnx2tf#942, onnx2tf#610, ultralytics#1695",
    repair="calibrate with the model's own inputs",
    native=inserted_behind(
        ("Conv", "MatMul", "Add"), lambda _: _steps(np.dtype(np.float32)), "saturated", "{name} saturates at 0.3"
    ),
)
