"""A layer's result is stored in eight bits though nobody asked for it."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import Step, dtype_of, insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import is_float, nodes_with

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    value = node.outputs[0]
    scale = [np.array(0.1, dtype_of(value)), np.array(0, np.int8)]
    steps: list[Step] = [("QuantizeLinear", {}, scale), ("DequantizeLinear", {}, scale)]
    nodes = insert_behind(value, steps, "quantized")
    return Change((node, *nodes), f"{node.name} is stored as int8 in steps of 0.1")


FAULT = Fault(
    name="result-in-few-bits",
    kind=Kind.PRECISION,
    provenance="openvino#28032, tensorflow#38062",
    repair="float32 for the layer",
    places=nodes_with(lambda node: is_float(node.outputs[0]), "Conv", "Gemm", "MatMul"),
    change=_change,
)
