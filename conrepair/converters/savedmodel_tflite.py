"""SavedModel to TFLite by TensorFlow's converter, in float unless asked otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter
from conrepair.frameworks.model import Model
from conrepair.runtime.errors import ConversionError

__all__ = ["CONVERTER"]

_FILE = "model.tflite"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import tensorflow as tf

    if reason := _accepts(model):
        raise ConversionError(f"savedmodel-tflite can't take {model.path}: {reason}.")
    converter = tf.lite.TFLiteConverter.from_saved_model(model.path)
    (folder / _FILE).write_bytes(converter.convert())
    return _FILE


def _accepts(model: Model) -> str | None:
    return None if Path(model.path).is_dir() else "it reads SavedModel folders, not frozen graphs"


CONVERTER = Converter(
    name="savedmodel-tflite",
    source="tensorflow",
    target="tflite",
    distributions=("tensorflow",),
    needs=frozenset({"tensorflow"}),
    convert=_convert,
    accepts=_accepts,
)
