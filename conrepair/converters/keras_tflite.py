"""Keras to TFLite by TensorFlow's converter, in float unless asked otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]

_FILE = "model.tflite"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import tensorflow as tf

    from conrepair.frameworks.keras import load_flat_keras

    converter = tf.lite.TFLiteConverter.from_keras_model(load_flat_keras(model))
    (folder / _FILE).write_bytes(converter.convert())
    return _FILE


CONVERTER = Converter(
    name="keras-tflite",
    source="keras",
    target="tflite",
    distributions=("tensorflow", "keras"),
    needs=frozenset({"tensorflow"}),
    convert=_convert,
)
