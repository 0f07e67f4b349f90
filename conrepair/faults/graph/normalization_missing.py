"""A BatchNormalization is neither there nor folded into its neighbour."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import bypass
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import operators

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    name = node.name
    return Change(bypass(node), f"{name} is gone")


FAULT = Fault(
    name="normalization-missing",
    kind=Kind.GRAPH,
    provenance="pytorch#18525, onnxmltools#323",
    repair="insert it",
    places=operators("BatchNormalization", "InstanceNormalization", "LayerNormalization"),
    change=_change,
)
