"""An operator's axis wasn't rewritten when its input's layout was."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed, shape_of
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Attribute, LayerGraph, Node

__all__ = ["FAULT"]


def _moved(node: Node, _: np.random.Generator) -> Mapping[str, Attribute]:
    """To the axis before; an axis in front of the first isn't one of any layout."""
    before = node.attributes["axis"]
    return {"axis": before - 1 if isinstance(before, int) and before else 1}


def _has_another(graph: LayerGraph, node: Node) -> bool:
    return bool(node.attributes["axis"]) or len(shape_of(graph, node.outputs[0])) > 1


FAULT = Fault(
    name="axis-of-another-layout",
    kind=Kind.HYPERPARAMETERS,
    provenance="pytorch2keras#131, onnx2tf#105, tvm#20183",
    repair="axis",
    native=attributes_changed(["Softmax", "LogSoftmax"], _moved, _has_another),
)
