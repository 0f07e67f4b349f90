"""The largest value is taken for the mean, or the other way round."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import operator_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]


FAULT = Fault(
    name="pooling-replaced",
    kind=Kind.GRAPH,
    provenance="onnx-to-keras#31, mxnet#6191",
    repair="the operator",
    native=operator_changed(
        {"MaxPool": "AveragePool", "AveragePool": "MaxPool", "ReduceMean": "ReduceMax", "ReduceMax": "ReduceMean"},
        lambda graph, node: bool(graph.tensors[node.outputs[0]].is_real and not node.attributes.get("ceil_mode")),
    ),
)
