"""GELU by a hyperbolic tangent, or by the error function, where the other one was meant."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import attributes_changed
from benchmarks.faults.places import operators
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _other(approximate: str) -> str:
    return "tanh" if approximate == "none" else "none"


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    before = node.attributes["approximate"].as_string() if "approximate" in node.attributes else "none"
    after = _other(before)
    node.attributes["approximate"] = onnx_ir.AttrString("approximate", after)
    return Change((node,), f"{node.name}: approximate is {after!r}")


FAULT = Fault(
    name="gelu-approximated",
    kind=Kind.GRAPH,
    provenance="tvm#18750, nobuco#9, onnxruntime#2270",
    repair="approximate",
    places=operators("Gelu"),
    change=_change,
    native=attributes_changed(["Gelu"], lambda node, _: {"approximate": _other(node.text("approximate"))}),
)
