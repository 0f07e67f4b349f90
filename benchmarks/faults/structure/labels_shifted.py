"""The classes are off by one, as between 1000 and 1001 of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import float_outputs, inserted_at
from benchmarks.faults.steps import Step
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


def _steps(classes: int) -> Sequence[Step]:
    return [("Gather", {"axis": 1}, [np.roll(np.arange(classes), 1)])]


FAULT = Fault(
    name="labels-shifted",
    kind=Kind.STRUCTURE,
    provenance="tensorflow/models#9413 (a background class), open_model_zoo#1872",
    repair="the labels",
    native=inserted_at(
        float_outputs(2), lambda shape, _: _steps(shape[1]), "shifted", "the classes of {name} are shifted by one"
    ),
)
