"""ONNX to another opset by ONNX's own version converter."""

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
    from onnx import version_converter

    return save_onnx(version_converter.convert_version(onnx.load(model.path), options["opset"]), folder)


CONVERTER = Converter(
    name="onnx-version-converter",
    source="onnx",
    target="onnx",
    distributions=("onnx",),
    convert=_convert,
    options={"opset": Option(21, "ONNX opset to reach, up or down", least=1, alternatives=(21, 22, 23, 18))},
    automatic=False,
)
