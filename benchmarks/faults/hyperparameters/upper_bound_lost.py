"""A clipping from zero up (ReLU6) is a rectifier without an upper bound."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import operator_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


FAULT = Fault(
    name="upper-bound-lost",
    kind=Kind.HYPERPARAMETERS,
    provenance="MMdnn#798, onnx2keras#167",
    repair="the bound",
    native=operator_changed(
        {"Clip": "Relu"}, lambda _, node: node.attributes["min"] == 0 and node.attributes["max"] is not None
    ),
)
