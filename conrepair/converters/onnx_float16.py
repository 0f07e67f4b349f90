"""ONNX to ONNX in float16 by ONNX Runtime's transformer tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.onnx_file import save_onnx
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx
    import onnx_ir
    from onnxruntime.transformers.float16 import convert_float_to_float16

    half = convert_float_to_float16(onnx.load(model.path), keep_io_types=options["keep_io"])
    # It puts its casts at the end of the graph; ONNX wants every node behind those that it reads.
    graph = onnx_ir.from_proto(half)
    graph.graph.sort()
    return save_onnx(onnx_ir.to_proto(graph), folder)


CONVERTER = Converter(
    name="onnx-float16",
    source="onnx",
    target="onnx",
    distributions=("onnxruntime", "onnx", "onnx-ir"),
    convert=_convert,
    options={"keep_io": Option(True, "inputs and outputs stay float32")},
    automatic=False,
    intent=lambda _: "float16",
)
