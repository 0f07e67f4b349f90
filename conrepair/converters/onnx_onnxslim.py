"""ONNX to simpler ONNX by onnxslim (constant folding, fusion, removal of what does nothing)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option, parts_without
from conrepair.converters.onnx_file import save_onnx
from conrepair.frameworks.model import Model
from conrepair.runtime.errors import ConversionError

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx
    import onnxslim

    off = parts_without("onnx-onnxslim", options["without"], _patterns())

    # It counts modified nodes in a copy of its own; the loaded model keeps our file out of its reach.
    slimmed = onnxslim.slim(
        onnx.load(model.path), no_shape_infer=not options["infer_shapes"], skip_fusion_patterns=off or None
    )
    if slimmed is None:
        raise ConversionError(f"onnxslim made nothing of {model.path}, and says no reason.")
    return save_onnx(slimmed, folder)


def _patterns() -> list[str]:
    """What it fuses, and what it leaves out, by its own names."""
    from onnxslim.core.pattern.registry import DEFAULT_FUSION_PATTERNS

    return list(DEFAULT_FUSION_PATTERNS)


CONVERTER = Converter(
    name="onnx-onnxslim",
    source="onnx",
    target="onnx",
    distributions=("onnxslim", "onnx"),
    convert=_convert,
    options={
        "infer_shapes": Option(True, "write inferred shapes into the graph"),
        "without": Option("", "patterns that are left as they are, separated by commas"),
    },
    automatic=False,
    parts=_patterns,
)
