"""The converters there are."""

from __future__ import annotations

import difflib

from conrepair.converters import (
    keras_onnx,
    keras_savedmodel,
    keras_tflite,
    onnx_normalise,
    onnx_torch,
    savedmodel_onnx,
    savedmodel_tflite,
    tflite_onnx,
    torch_onnx_dynamo,
    torch_onnx_script,
)
from conrepair.converters.base import Converter
from conrepair.runtime.errors import ConfigError

__all__ = ["CONVERTERS", "converter"]

_MODULES = (
    torch_onnx_dynamo,
    torch_onnx_script,
    onnx_torch,
    onnx_normalise,
    keras_onnx,
    keras_savedmodel,
    keras_tflite,
    savedmodel_onnx,
    savedmodel_tflite,
    tflite_onnx,
)

CONVERTERS: dict[str, Converter] = {module.CONVERTER.name: module.CONVERTER for module in _MODULES}


def converter(name: str) -> Converter:
    """Return the converter of that name.

    Raises:
        ConfigError: if there's none; suggests the closest.
    """
    if name in CONVERTERS:
        return CONVERTERS[name]
    close = difflib.get_close_matches(name, CONVERTERS, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    raise ConfigError(f"there is no converter '{name}'; {hint}known: {', '.join(CONVERTERS)}")
