"""The weights of a layer are lost."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 1)
    set_constant(node, 1, np.zeros_like(array))
    return Change((node,), f"the weights of {node.name} are zeros")


FAULT = Fault(
    name="weights-zeroed",
    kind=Kind.PARAMETERS,
    provenance="pytorch#95867, onnx#3992",
    repair="the weights",
    places=weights(),
    change=_change,
)
