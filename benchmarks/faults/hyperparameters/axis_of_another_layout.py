"""An operator's axis wasn't rewritten when its input's layout was."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import attributes_changed, shape_of
from benchmarks.faults.places import nodes_with, rank_of
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Attribute, Node

__all__ = ["FAULT"]


def _moved(node: Node, _: np.random.Generator) -> Mapping[str, Attribute]:
    """To the axis before; an axis in front of the first isn't one of any layout."""
    before = node.attributes["axis"]
    return {"axis": before - 1 if isinstance(before, int) and before else 1}


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    rank = rank_of(node.inputs[0]) or 0
    before = (node.attributes["axis"].as_int() if "axis" in node.attributes else -1) % rank
    after = (before - 1) % rank
    node.attributes["axis"] = onnx_ir.AttrInt64("axis", after)
    return Change((node,), f"{node.name}: axis {after} instead of {before}")


FAULT = Fault(
    name="axis-of-another-layout",
    kind=Kind.HYPERPARAMETERS,
    provenance="pytorch2keras#131, onnx2tf#105, tvm#20183",
    repair="axis",
    places=nodes_with(lambda node: (rank_of(node.inputs[0]) or 0) > 1, "Softmax", "LogSoftmax"),
    change=_change,
    native=attributes_changed(
        ["Softmax", "LogSoftmax"], _moved, lambda graph, node: len(shape_of(graph, node.outputs[0])) > 1
    ),
)
