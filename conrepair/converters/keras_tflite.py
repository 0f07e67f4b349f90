"""Keras to TFLite by TensorFlow's converter, in float unless asked otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter
from conrepair.converters.tflite_quantization import OPTIONS, calibrates, intent, write_tflite
from conrepair.data.calibration import CalibrationFeeds
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any], feeds: CalibrationFeeds | None = None) -> str:
    import tensorflow as tf

    from conrepair.frameworks.keras import load_flat_keras

    converter = tf.lite.TFLiteConverter.from_keras_model(load_flat_keras(model))
    return write_tflite(converter, folder, options, feeds)


CONVERTER = Converter(
    name="keras-tflite",
    source="keras",
    target="tflite",
    distributions=("tensorflow", "keras"),
    needs=frozenset({"tensorflow"}),
    convert=_convert,
    options=OPTIONS,
    intent=intent,
    calibrates=calibrates,
    convert_calibrated=_convert,
)
