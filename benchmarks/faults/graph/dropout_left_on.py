"""Activations are scaled as in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import inserted_behind
from benchmarks.faults.steps import Step
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]

_WORDS = "{name} is divided by a keep probability of 0.8"


def _steps(dtype: np.dtype[Any]) -> Sequence[Step]:
    return [("Mul", {}, [np.array(1 / 0.8, dtype)])]


FAULT = Fault(
    name="dropout-left-on",
    kind=Kind.GRAPH,
    provenance="rf-detr#871, weaver-core#29",
    repair="remove it",
    native=inserted_behind(
        ("Relu", "Clip", "MatMul", "Tanh", "Conv"), lambda _: _steps(np.dtype(np.float32)), "dropout", _WORDS
    ),
)
