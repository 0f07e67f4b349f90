"""TensorFlow SavedModel or frozen graph to TFLite by TensorFlow's converter, in float unless asked otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter
from conrepair.converters.tflite_quantization import OPTIONS, calibrates, intent, write_tflite
from conrepair.data.calibration import CalibrationFeeds
from conrepair.frameworks.model import Model
from conrepair.frameworks.screening.admission import admitted

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any], feeds: CalibrationFeeds | None = None) -> str:
    import tensorflow as tf

    from conrepair.frameworks.tensorflow import callable_by_position, load_function

    if Path(model.path).is_dir():
        with admitted(model) as path:
            return write_tflite(tf.lite.TFLiteConverter.from_saved_model(str(path)), folder, options, feeds)
    function, _ = load_function(model)
    concrete = callable_by_position(function).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], tf.Module())
    return write_tflite(converter, folder, options, feeds)


CONVERTER = Converter(
    name="savedmodel-tflite",
    source="tensorflow",
    target="tflite",
    distributions=("tensorflow",),
    convert=_convert,
    options=OPTIONS,
    intent=intent,
    calibrates=calibrates,
)
