"""The largest value is taken for the mean, or the other way round."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import operator_changed
from benchmarks.faults.places import nodes_with
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    before = node.op_type
    node.op_type = before.replace("Average", "Max") if "Average" in before else before.replace("Max", "Average")
    return Change((node,), f"{node.name} is {node.op_type} instead of {before}")


FAULT = Fault(
    name="pooling-replaced",
    kind=Kind.GRAPH,
    provenance="onnx-to-keras#31, mxnet#6191",
    repair="the operator",
    places=nodes_with(
        lambda node: (
            len(node.outputs) == 1
            and not set(node.attributes) & {"ceil_mode", "storage_order", "count_include_pad", "dilations"}
        ),
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
        "GlobalMaxPool",
    ),
    change=_change,
    native=operator_changed(
        {"MaxPool": "AveragePool", "AveragePool": "MaxPool", "ReduceMean": "ReduceMax", "ReduceMax": "ReduceMean"},
        lambda graph, node: bool(graph.tensors[node.outputs[0]].is_real and not node.attributes.get("ceil_mode")),
    ),
)
