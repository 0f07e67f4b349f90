"""ONNX to simpler ONNX by onnxoptimizer, whose passes have names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option, parts_without
from conrepair.converters.onnx_file import save_onnx
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx
    import onnxoptimizer

    passes = _passes()
    off = parts_without("onnx-onnxoptimizer", options["without"], passes)
    optimized = onnxoptimizer.optimize(onnx.load(model.path), [name for name in passes if name not in off])
    return save_onnx(optimized, folder)


def _passes() -> list[str]:
    """Those that it runs where it isn't told otherwise."""
    import onnxoptimizer

    return list(onnxoptimizer.get_fuse_and_elimination_passes())


CONVERTER = Converter(
    name="onnx-onnxoptimizer",
    source="onnx",
    target="onnx",
    distributions=("onnxoptimizer", "onnx"),
    convert=_convert,
    options={"without": Option("", "passes that are left out, separated by commas")},
    automatic=False,
    parts=_passes,
)
