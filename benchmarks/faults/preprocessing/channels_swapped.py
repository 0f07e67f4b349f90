"""Red and blue change places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import image_inputs, inserted_at
from benchmarks.faults.steps import Step
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


def _steps(axis: int) -> Sequence[Step]:
    return [("Gather", {"axis": axis}, [np.array([2, 1, 0])])]


FAULT = Fault(
    name="channels-swapped",
    kind=Kind.PREPROCESSING,
    provenance="tensorflow/models#9413, ultralytics#24893",
    repair="the recipe's channel order",
    native=inserted_at(
        image_inputs,
        lambda shape, _: _steps(1 if shape[1] == 3 else 3),
        "swapped",
        "the channels of {name} are reversed",
    ),
)
