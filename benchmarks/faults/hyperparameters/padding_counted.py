"""An average over padded cells divides by all of them, or only by those that there are."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]


def _pads(node: Node) -> tuple[object, ...]:
    pads = node.attributes.get("pads")
    return pads if isinstance(pads, tuple) else ()


FAULT = Fault(
    name="padding-counted",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnx#4958, onnxruntime#16203, onnx2tf#207",
    repair="count_include_pad",
    native=attributes_changed(
        ["AveragePool"],
        lambda node, _: {"count_include_pad": not node.attributes["count_include_pad"]},
        lambda _, node: "count_include_pad" in node.attributes and bool(any(_pads(node))),
    ),
)
