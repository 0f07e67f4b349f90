"""Noise on all weights of a layer, as a wrong dequantization leaves it."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 1)
    set_constant(
        node, 1, array + generator.normal(0, 0.1 * float(array.std()) + 1e-6, array.shape).astype(array.dtype)
    )
    return Change((node,), f"the weights of {node.name} are disturbed by a tenth of their spread")


FAULT = Fault(
    name="weights-disturbed",
    kind=Kind.PARAMETERS,
    provenance="tensorflow#60903",
    repair="the weights",
    places=weights(),
    change=_change,
)
