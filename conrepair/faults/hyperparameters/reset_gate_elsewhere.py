"""A GRU applies its reset gate before the product instead of behind it, or the other way round."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import operators

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    name = "linear_before_reset"
    before = node.attributes[name].as_int() if name in node.attributes else 0
    node.attributes[name] = onnx_ir.AttrInt64(name, 1 - before)
    return Change((node,), f"{node.name}: {name} is {1 - before}")


FAULT = Fault(
    name="reset-gate-elsewhere",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnxscript#2852, onnx-tensorflow#853, keras-onnx#33",
    repair="linear_before_reset",
    places=operators("GRU"),
    change=_change,
)
