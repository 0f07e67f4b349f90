"""GELU by a hyperbolic tangent, or by the error function, where the other one was meant."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


def _other(approximate: str) -> str:
    return "tanh" if approximate == "none" else "none"


FAULT = Fault(
    name="gelu-approximated",
    kind=Kind.GRAPH,
    provenance="tvm#18750, nobuco#9, onnxruntime#2270",
    repair="approximate",
    native=attributes_changed(["Gelu"], lambda node, _: {"approximate": _other(node.text("approximate"))}),
)
