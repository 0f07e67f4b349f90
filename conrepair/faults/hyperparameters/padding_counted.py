"""An average over padded cells divides by all of them, or only by those that there are."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    before = node.attributes["count_include_pad"].as_int() if "count_include_pad" in node.attributes else 0
    node.attributes["count_include_pad"] = onnx_ir.AttrInt64("count_include_pad", 1 - before)
    return Change((node,), f"{node.name}: count_include_pad is {1 - before}")


FAULT = Fault(
    name="padding-counted",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnx#4958, onnxruntime#16203, onnx2tf#207",
    repair="count_include_pad",
    places=nodes_with(
        lambda node: "pads" in node.attributes and any(node.attributes["pads"].as_ints()), "AveragePool"
    ),
    change=_change,
)
