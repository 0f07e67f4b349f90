"""Keras to ONNX: by tf2onnx, and by Keras's own export (`Model.export`), which drives tf2onnx in its own way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option, parts_without
from conrepair.converters.tf2onnx_shared import collecting_often, save
from conrepair.frameworks.model import Model
from conrepair.runtime.errors import ConversionError

__all__ = ["EXPORT", "TF2ONNX"]

_FILE = "exported.onnx"
_NAME = "keras-onnx-tf2onnx"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import tensorflow as tf
    import tf2onnx

    from conrepair.frameworks.keras import load_flat_keras

    off = parts_without(_NAME, options["without"], list(_optimizers()))
    optimizers = {name: factory for name, factory in _optimizers().items() if name not in off}
    network = load_flat_keras(model)
    signature = [tf.TensorSpec(tensor.shape, tensor.dtype, name=tensor.name) for tensor in network.inputs]
    with collecting_often(), _functions_in_place():
        proto, _ = tf2onnx.convert.from_keras(network, signature, opset=options["opset"], optimizers=optimizers)
    return save(proto, folder)


def _optimizers() -> Mapping[str, Any]:
    """What it does to the graph, by its own names, in its order."""
    from tf2onnx.optimizer import _optimizers

    return dict(_optimizers)


@contextlib.contextmanager
def _functions_in_place() -> Iterator[None]:
    """Trace a `tf.function` that a layer calls into the graph of its caller, until this is left.

    Keras wraps convolutions in groups in one that XLA must compile, which no optimizer of graphs takes apart.
    """
    import tensorflow as tf

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


TF2ONNX = Converter(
    name=_NAME,
    source="keras",
    target="onnx",
    distributions=("tf2onnx", "keras", "tensorflow", "onnx"),
    convert=_convert,
    options={
        "opset": Option(15, "ONNX opset (up to 18)", alternatives=(15, 13, 18, 11)),
        "without": Option("", "optimizers that are left out, separated by commas"),
    },
    parts=lambda: tuple(_optimizers()),
)


# By Keras's own export.


def _export(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
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


EXPORT = Converter(
    name="keras-onnx-export",
    source="keras",
    target="onnx",
    distributions=("keras", "tf2onnx", "tensorflow", "onnx"),
    convert=_export,
    options={"opset": Option(15, "ONNX opset (up to 18); 0 lets Keras choose", alternatives=(15, 13, 18))},
    preference=11,
)
