"""Keras to SavedModel by Keras's own export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]

_FOLDER = "saved_model"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    from conrepair.frameworks.keras import load_keras

    load_keras(model).export(str(folder / _FOLDER), format="tf_saved_model", verbose=False)
    return _FOLDER


CONVERTER = Converter(
    name="keras-savedmodel",
    source="keras",
    target="tensorflow",
    distributions=("keras", "tensorflow"),
    needs=frozenset({"tensorflow"}),
    convert=_convert,
)
