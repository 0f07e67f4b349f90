"""The offset of a normalization is lost."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import constant_of, numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 2)
    set_constant(node, 2, np.zeros_like(array))
    return Change((node,), f"{node.name}: its offset is zero")


FAULT = Fault(
    name="normalization-shift-lost",
    kind=Kind.PARAMETERS,
    provenance="onnxmltools#323",
    repair="the tensor",
    places=nodes_with(
        lambda node: constant_of(node, 2) is not None,
        "BatchNormalization",
        "InstanceNormalization",
        "LayerNormalization",
        "GroupNormalization",
    ),
    change=_change,
)
