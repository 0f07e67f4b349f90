"""Pixels are divided by 255 although they were already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import float_inputs, inserted_at
from benchmarks.faults.steps import Step
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


def _steps(dtype: np.dtype[Any]) -> Sequence[Step]:
    return [("Mul", {}, [np.array(1 / 255, dtype)])]


FAULT = Fault(
    name="pixels-scaled-twice",
    kind=Kind.PREPROCESSING,
    provenance="ncnn#1472, ultralytics#24893",
    repair="leave the second scaling away",
    native=inserted_at(
        float_inputs, lambda *_: _steps(np.dtype(np.float32)), "scaled", "{name} is divided by 255 once more"
    ),
)
