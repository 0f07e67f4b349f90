"""A factor of Gemm is ignored, or not there."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


FAULT = Fault(
    name="alpha-ignored",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnx2keras 0.0.25",
    repair="alpha",
    native=attributes_changed(
        ("MatMul",),
        lambda node, _: {"alpha": 0.5 if node.written["alpha"] == 1 else 1.0},
        lambda _, node: "alpha" in node.written,
    ),
)
