"""The converters there are."""

from __future__ import annotations

import importlib

from conrepair.formats.converters.base import Converter
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.plugins import Registry
from conrepair.ground.runtime.words import meant

_MODULES = (
    *("torch_onnx", "onnx_torch", "onnx_normalise", "from_keras", "from_savedmodel", "tflite_onnx"),
    *("onnx_tools", "isolated"),
)
CONVERTERS: Registry[Converter] = Registry(
    "converters",
    {
        item.name: item
        for name in _MODULES
        for item in vars(importlib.import_module(f"conrepair.formats.converters.{name}")).values()
        if isinstance(item, Converter)
    },
    Converter,
)
_GONE = {"onnx-keras-onnx2keras": " any more, as onnx2keras fails on files that came from Keras: use onnx-keras"}
"""Names that there were, and what to use instead."""


def converter(name: str) -> Converter:
    """Return the converter of that name.

    Raises:
        ConfigError: if there's none; suggests the closest.
    """
    if name in CONVERTERS:
        return CONVERTERS[name]
    hint = _GONE.get(name) or meant(name, CONVERTERS, f"known: {', '.join(CONVERTERS)}")
    raise ConfigError(f"there is no converter '{name}'{hint}")
