"""A scale is applied twice, or not at all."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 1)
    set_constant(node, 1, array * array.dtype.type(generator.choice([0.5, 1.25, 2.0])))
    return Change((node,), f"the weights of {node.name} are scaled")


FAULT = Fault(
    name="weights-scaled",
    kind=Kind.PARAMETERS,
    provenance="onnx2tf#942, pytorch#166797",
    repair="the weights, or the scale",
    places=weights(),
    change=_change,
)
