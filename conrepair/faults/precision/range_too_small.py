"""A layer's result saturates at a range that was calibrated on other data."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import dtype_of, insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import is_float, nodes_with

__all__ = ["FAULT"]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    value = node.outputs[0]
    bounds = [np.array(bound, dtype_of(value)) for bound in (-0.3, 0.3)]
    nodes = insert_behind(value, [("Clip", {}, bounds)], "saturated")
    return Change((node, *nodes), f"{node.name} saturates at 0.3")


FAULT = Fault(
    name="range-too-small",
    kind=Kind.PRECISION,
    provenance="onnx2tf#942, onnx2tf#610, ultralytics#1695",
    repair="calibrate with the model's own inputs",
    places=nodes_with(lambda node: is_float(node.outputs[0]), "Conv", "Gemm", "MatMul", "Add"),
    change=_change,
)
