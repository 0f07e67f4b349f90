"""One layer's result passes through float16."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import Step, insert_behind
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import is_float, nodes_with

__all__ = ["FAULT"]

_HALF = int(onnx_ir.DataType.FLOAT16)


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    value = node.outputs[0]
    steps: list[Step] = [("Cast", {"to": _HALF}, []), ("Cast", {"to": int(value.dtype or 1)}, [])]
    return Change((node, *insert_behind(value, steps, "half")), f"{node.name} is stored as float16")


FAULT = Fault(
    name="layer-in-float16",
    kind=Kind.PRECISION,
    provenance="TensorRT#2564, coremltools#2110, openvino#27795",
    repair="float32 for the layer",
    places=nodes_with(
        lambda node: is_float(node.outputs[0]), "Conv", "Gemm", "MatMul", "LayerNormalization", "Softmax"
    ),
    change=_change,
)
