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

    loaded = load_keras(model)
    inputs = getattr(loaded, "inputs", None) or ()  # a subclass may not say
    signature = {} if all(tensor.shape for tensor in inputs) else {"input_signature": _signature(loaded)}
    loaded.export(str(folder / _FOLDER), format="tf_saved_model", verbose=False, **signature)
    return _FOLDER


def _signature(model: Any) -> list[Any]:
    """Inputs as Keras has them, but for single numbers, to which it gives a batch."""
    import keras

    def spec(tensor: Any) -> Any:
        shape = (None, *tensor.shape[1:]) if tensor.shape else ()
        return keras.InputSpec(shape=shape, dtype=tensor.dtype, name=tensor.name)

    return [keras.tree.map_structure(spec, model.input)]


CONVERTER = Converter(
    name="keras-savedmodel",
    source="keras",
    target="tensorflow",
    distributions=("keras", "tensorflow"),
    convert=_convert,
)
