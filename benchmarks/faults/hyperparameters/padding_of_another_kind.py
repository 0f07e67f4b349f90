"""Pad fills with something else."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import attributes_changed
from benchmarks.faults.places import operators
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]

_OTHERS = {"constant": "edge", "edge": "constant", "reflect": "constant", "symmetric": "reflect", "wrap": "constant"}


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    before = node.attributes["mode"].as_string() if "mode" in node.attributes else "constant"
    after = _OTHERS[before]
    node.attributes["mode"] = onnx_ir.AttrString("mode", after)
    return Change((node,), f"{node.name} pads by {after} instead of {before}")


FAULT = Fault(
    name="padding-of-another-kind",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnxruntime#2433, tvm#11687, onnx2tf#356",
    repair="mode",
    places=operators("Pad"),
    change=_change,
    native=attributes_changed(
        ["Pad"],
        lambda node, _: {"mode": _OTHERS[node.text("mode")]},
        lambda _, node: "mode" in node.attributes,
    ),
)
