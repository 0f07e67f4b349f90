"""A layer's weights have eight bits of mantissa."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 1)
    kept = array.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    set_constant(node, 1, kept.view(np.float32).astype(array.dtype))
    return Change((node,), f"the weights of {node.name} have the mantissa of bfloat16")


FAULT = Fault(
    name="weights-in-bfloat16",
    kind=Kind.PRECISION,
    provenance="openvino#28032, ipex-llm#6473",
    repair="float32 for the layer",
    places=weights(),
    change=_change,
)
