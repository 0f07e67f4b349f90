"""A mean is subtracted that the pixels don't have any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import float_inputs, inserted_at
from benchmarks.faults.steps import Step
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


def _steps(dtype: np.dtype[Any], generator: np.random.Generator) -> Sequence[Step]:
    return [("Sub", {}, [np.array(generator.uniform(0.3, 0.6), dtype)])]


FAULT = Fault(
    name="mean-subtracted-twice",
    kind=Kind.PREPROCESSING,
    provenance="mmdeploy#1646, open_model_zoo#1872",
    repair="leave the second subtraction away",
    native=inserted_at(
        float_inputs,
        lambda _, generator: _steps(np.dtype(np.float32), generator),
        "centred",
        "a mean is subtracted from {name}",
    ),
)
