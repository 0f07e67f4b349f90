"""A layer's result saturates at a range that was calibrated on other data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir

from benchmarks.faults.edits import dtype_of, insert_behind
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import inserted_behind
from benchmarks.faults.places import is_float, nodes_with
from conrepair.editors.editor import Step
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _steps(dtype: np.dtype[Any]) -> Sequence[Step]:
    return [("Clip", {}, [np.array(bound, dtype) for bound in (-0.3, 0.3)])]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    value = node.outputs[0]
    nodes = insert_behind(value, _steps(dtype_of(value)), "saturated")
    return Change((node, *nodes), f"{node.name} saturates at 0.3")


FAULT = Fault(
    name="range-too-small",
    kind=Kind.PRECISION,
    provenance="onnx2tf#942, onnx2tf#610, ultralytics#1695",
    repair="calibrate with the model's own inputs",
    places=nodes_with(lambda node: is_float(node.outputs[0]), "Conv", "Gemm", "MatMul", "Add"),
    change=_change,
    native=inserted_behind(
        ("Conv", "MatMul", "Add"), lambda _: _steps(np.dtype(np.float32)), "saturated", "{name} saturates at 0.3"
    ),
)
