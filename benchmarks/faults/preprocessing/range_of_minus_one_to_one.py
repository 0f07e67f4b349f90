"""Inputs of 0 to 1 are taken to be wanted as -1 to 1."""

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
    return [("Mul", {}, [np.array(2, dtype)]), ("Sub", {}, [np.array(1, dtype)])]


FAULT = Fault(
    name="range-of-minus-one-to-one",
    kind=Kind.PREPROCESSING,
    provenance="MNN#638, openvino#11942",
    repair="the recipe's scale and mean",
    native=inserted_at(float_inputs, lambda *_: _steps(np.dtype(np.float32)), "ranged", "{name} becomes 2 x - 1"),
)
