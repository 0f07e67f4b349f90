"""A layer's bias is in another order than its channels."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import constant_of, numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


def _has_bias(node: onnx_ir.Node) -> bool:
    array = constant_of(node, 2)
    return array is not None and array.size > 1 and bool(array.any())


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 2)
    set_constant(node, 2, np.roll(array, 1, -1))
    return Change((node,), f"the bias of {node.name} is shifted by one channel")


FAULT = Fault(
    name="bias-permuted",
    kind=Kind.PARAMETERS,
    provenance="pytorch#166797",
    repair="the bias",
    places=nodes_with(_has_bias, "Conv", "ConvTranspose", "Gemm"),
    change=_change,
)
