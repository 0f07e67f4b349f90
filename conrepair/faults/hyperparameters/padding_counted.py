"""An average over padded cells divides by all of them, or only by those that there are."""

from __future__ import annotations

from conrepair.faults.families import flipped
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


FAULT = Fault(
    name="padding-counted",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnx#4958, onnxruntime#16203, onnx2tf#207",
    repair="count_include_pad",
    places=nodes_with(
        lambda node: "pads" in node.attributes and any(node.attributes["pads"].as_ints()), "AveragePool"
    ),
    change=flipped("count_include_pad"),
)
