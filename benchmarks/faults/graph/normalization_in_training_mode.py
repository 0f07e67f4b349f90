"""A BatchNormalization takes the statistics of the batch."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import operator_changed, shape_of
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


FAULT = Fault(
    name="normalization-in-training-mode",
    kind=Kind.GRAPH,
    provenance="onnxruntime#26584, onnxscript#818, tensorflow#25170",
    repair="the statistics that were stored",
    native=operator_changed(
        {"BatchNormalization": "InstanceNormalization"},
        lambda graph, node: len(shape_of(graph, node.outputs[0])) == 4,
    ),
)
