"""ONNX to simpler ONNX by onnxslim (constant folding, fusion, removal of what does nothing)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.onnx_file import save_onnx
from conrepair.frameworks.model import Model
from conrepair.runtime.errors import ConversionError

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx
    import onnxslim

    # It counts modified nodes in a copy of its own; the loaded model keeps our file out of its reach.
    slimmed = onnxslim.slim(onnx.load(model.path), no_shape_infer=not options["infer_shapes"])
    if slimmed is None:
        raise ConversionError(f"onnxslim made nothing of {model.path}, and says no reason.")
    return save_onnx(slimmed, folder)


CONVERTER = Converter(
    name="onnx-onnxslim",
    source="onnx",
    target="onnx",
    distributions=("onnxslim", "onnx"),
    needs=frozenset({"onnx"}),
    convert=_convert,
    options={"infer_shapes": Option(True, "write inferred shapes into the graph")},
    automatic=False,
)
