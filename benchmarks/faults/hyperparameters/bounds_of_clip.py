"""The upper bound of a clipping (ReLU6) is lost or another."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


def _factor(generator: np.random.Generator) -> float:
    return float(generator.choice([0.5, 100.0]))


FAULT = Fault(
    name="bounds-of-clip",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnx-tool#39, onnx2tf#207",
    repair="the bound",
    native=attributes_changed(
        ["Clip"],
        lambda node, generator: {"max": node.real("max") * _factor(generator)},
        lambda _, node: isinstance(node.attributes.get("max"), int | float),
    ),
)
