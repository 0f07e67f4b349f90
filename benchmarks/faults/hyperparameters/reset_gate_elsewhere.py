"""A GRU applies its reset gate before the product instead of behind it, or the other way round."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


FAULT = Fault(
    name="reset-gate-elsewhere",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnxscript#2852, onnx-tensorflow#853, keras-onnx#33",
    repair="linear_before_reset",
    native=attributes_changed(
        ("GRU",), lambda node, _: {"linear_before_reset": not node.attributes["linear_before_reset"]}
    ),
)
