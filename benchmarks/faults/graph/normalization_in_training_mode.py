"""A BatchNormalization takes the statistics of the batch."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import operator_changed, shape_of
from benchmarks.faults.places import nodes_with, rank_of
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _has_channels(node: onnx_ir.Node) -> bool:
    return rank_of(node.inputs[0]) == 4 and not (node.attributes and "training_mode" in node.attributes)


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    """Each sample's own statistics: those of the batch would depend on its size."""
    node.op_type = "InstanceNormalization"
    for name in [name for name in node.attributes if name != "epsilon"]:
        del node.attributes[name]
    node.resize_inputs(3)
    return Change((node,), f"{node.name} takes its statistics from its input")


FAULT = Fault(
    name="normalization-in-training-mode",
    kind=Kind.GRAPH,
    provenance="onnxruntime#26584, onnxscript#818, tensorflow#25170",
    repair="the statistics that were stored",
    places=nodes_with(_has_channels, "BatchNormalization"),
    change=_change,
    native=operator_changed(
        {"BatchNormalization": "InstanceNormalization"},
        lambda graph, node: len(shape_of(graph, node.outputs[0])) == 4,
    ),
)
