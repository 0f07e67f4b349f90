"""ONNX to Keras by our own importer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.converters.base import Converter, Option
from conrepair.formats.models.model import Model

_FILE = "model.keras"
_LAYOUTS = ("source", "channels-last")


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx_ir

    from conrepair_onnx_keras.importer.graph import import_model

    network = import_model(
        onnx_ir.load(model.path),
        sizes={spec.name: spec.shape for spec in model.inputs},
        channels_last_inputs=options["inputs"] == "channels-last",
        channels_last_outputs=options["outputs"] == "channels-last",
    )
    network.save(folder / _FILE)
    return _FILE


CONVERTER = Converter(
    name="onnx-keras",
    source="onnx",
    target="keras",
    distributions=("keras", "tensorflow", "onnx", "onnx-ir", "sympy"),
    convert=_convert,
    options={
        "inputs": Option("source", "layout of inputs with three axes or more", _LAYOUTS),
        "outputs": Option("source", "layout of outputs with three axes or more", _LAYOUTS),
    },
    preference=1,
)
