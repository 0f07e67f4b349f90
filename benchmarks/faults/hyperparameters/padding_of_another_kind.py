"""Pad fills with something else."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]

_OTHERS = {"constant": "edge", "edge": "constant", "reflect": "constant", "symmetric": "reflect", "wrap": "constant"}


FAULT = Fault(
    name="padding-of-another-kind",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnxruntime#2433, tvm#11687, onnx2tf#356",
    repair="mode",
    native=attributes_changed(
        ["Pad"],
        lambda node, _: {"mode": _OTHERS[node.text("mode")]},
        lambda _, node: "mode" in node.attributes,
    ),
)
