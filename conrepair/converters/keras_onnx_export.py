"""Keras to ONNX by Keras's own export (`Model.export`), which drives tf2onnx in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.tf2onnx_shared import collecting_often, save
from conrepair.frameworks.model import Model
from conrepair.runtime.errors import ConversionError

__all__ = ["CONVERTER"]

_FILE = "exported.onnx"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import keras
    import onnx
    import tensorflow as tf

    from conrepair.frameworks.keras import load_flat_keras

    network = load_flat_keras(model)
    # Without a signature the export refuses a loaded model: it has "never been called".
    signature = keras.tree.map_structure(
        lambda tensor: tf.TensorSpec(tensor.shape, tensor.dtype, name=tensor.name), network.input
    )
    exported = folder / _FILE
    with collecting_often():
        network.export(
            str(exported),
            format="onnx",
            verbose=False,
            input_signature=[signature],
            opset_version=options["opset"] or None,
        )
    proto = onnx.load(exported)
    exported.unlink()
    added = [value.name for value in proto.graph.input][len(network.inputs) :]
    if added:
        raise ConversionError(
            f"Keras's export made inputs of {len(added)} constants of its layers ({', '.join(added)}); their values "
            "are lost. keras-onnx-tf2onnx keeps them."
        )
    return save(proto, folder)


CONVERTER = Converter(
    name="keras-onnx-export",
    source="keras",
    target="onnx",
    distributions=("keras", "tf2onnx", "tensorflow", "onnx"),
    convert=_convert,
    options={"opset": Option(15, "ONNX opset (up to 18); 0 lets Keras choose", alternatives=(15, 13, 18))},
    preference=11,
)
