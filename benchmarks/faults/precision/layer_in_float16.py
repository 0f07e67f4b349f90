"""One layer's result passes through float16."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir

from benchmarks.faults.edits import insert_behind
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import inserted_behind
from benchmarks.faults.places import is_float, nodes_with
from conrepair.editors.editor import Step
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]

_HALF, _FLOAT = int(onnx_ir.DataType.FLOAT16), int(onnx_ir.DataType.FLOAT)


def _steps(back: int) -> Sequence[Step]:
    return [("Cast", {"to": _HALF}, []), ("Cast", {"to": back}, [])]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    value = node.outputs[0]
    nodes = insert_behind(value, _steps(int(value.dtype or _FLOAT)), "half")
    return Change((node, *nodes), f"{node.name} is stored as float16")


FAULT = Fault(
    name="layer-in-float16",
    kind=Kind.PRECISION,
    provenance="TensorRT#2564, coremltools#2110, openvino#27795",
    repair="float32 for the layer",
    places=nodes_with(
        lambda node: is_float(node.outputs[0]), "Conv", "Gemm", "MatMul", "LayerNormalization", "Softmax"
    ),
    change=_change,
    native=inserted_behind(
        ("Conv", "MatMul", "LayerNormalization", "Softmax"),
        lambda _: _steps(_FLOAT),
        "half",
        "{name} is stored as float16",
    ),
)
