"""One layer's result passes through float16."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import inserted_behind
from benchmarks.faults.steps import Step
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]

_HALF, _FLOAT = int(onnx.TensorProto.FLOAT16), int(onnx.TensorProto.FLOAT)


def _steps(_: np.random.Generator) -> Sequence[Step]:
    return [("Cast", {"to": _HALF}, []), ("Cast", {"to": _FLOAT}, [])]


FAULT = Fault(
    name="layer-in-float16",
    kind=Kind.PRECISION,
    provenance="TensorRT#2564, coremltools#2110, openvino#27795",
    repair="float32 for the layer",
    native=inserted_behind(
        ("Conv", "MatMul", "LayerNormalization", "Softmax"),
        _steps,
        "half",
        "{name} is stored as float16",
    ),
)
