"""Keras to ONNX, SavedModel, TFLite and PyTorch."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conrepair.formats.converters.base import Converter, Option, parts_without
from conrepair.formats.converters.tf2onnx_shared import collecting_often, save
from conrepair.formats.converters.tflite_quantization import OPTIONS, as_quantized, calibrates, intent, write_tflite
from conrepair.formats.models.model import Model
from conrepair.ground.data.feeds import CalibrationFeeds
from conrepair.ground.runtime.errors import ConversionError
from conrepair.ground.runtime.notes import note
from conrepair.ground.runtime.outside.scripts import run_script

_FILE = "exported.onnx"
_NAME = "keras-onnx-tf2onnx"
_SAVED_MODEL = "saved_model"
_SCRIPT = Path(__file__).parent / "scripts" / "keras_torch.py"


# By tf2onnx.


def _to_onnx(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import tensorflow as tf
    import tf2onnx

    from conrepair.formats.keras.load.framework import load_flat_keras

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
    convert=_to_onnx,
    options={
        "opset": Option(15, "ONNX opset (up to 18)", alternatives=(15, 13, 18, 11)),
        "without": Option("", "optimizers that are left out, separated by commas"),
    },
    parts=lambda: tuple(_optimizers()),
)


# By Keras's own export (`Model.export`), which drives tf2onnx in its own way.


def _export(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import keras
    import onnx
    import tensorflow as tf

    from conrepair.formats.keras.load.framework import load_flat_keras

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


# To SavedModel, by Keras's own export, too.


def _to_saved_model(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    from conrepair.formats.keras.load.framework import load_keras

    loaded = load_keras(model)
    inputs = getattr(loaded, "inputs", None) or ()  # a subclass may not say
    signature = {} if all(tensor.shape for tensor in inputs) else {"input_signature": _signature(loaded)}
    loaded.export(str(folder / _SAVED_MODEL), format="tf_saved_model", verbose=False, **signature)
    return _SAVED_MODEL


def _signature(model: Any) -> list[Any]:
    """Inputs as Keras has them, but for single numbers, to which it gives a batch."""
    import keras

    def spec(tensor: Any) -> Any:
        shape = (None, *tensor.shape[1:]) if tensor.shape else ()
        return keras.InputSpec(shape=shape, dtype=tensor.dtype, name=tensor.name)

    return [keras.tree.map_structure(spec, model.input)]


SAVED_MODEL = Converter("keras-savedmodel", "keras", "tensorflow", ("keras", "tensorflow"), _to_saved_model)


# To TFLite, by TensorFlow's converter, in float unless asked otherwise.


def _to_tflite(model: Model, folder: Path, options: Mapping[str, Any], feeds: CalibrationFeeds | None = None) -> str:
    import tensorflow as tf

    from conrepair.formats.keras.load.framework import computed_in, load_flat_keras, narrower_type

    network = load_flat_keras(model)
    if narrower := narrower_type(network):
        network = computed_in(network, "float32")
        note(f"it computes in float32, as its weights are: TFLite has no kernels of {narrower}")
    _unroll(network, options["unroll"])
    return write_tflite(tf.lite.TFLiteConverter.from_keras_model(network), folder, options, feeds)


def _unroll(network: Any, longest: int) -> None:
    """Let recurrent layers write their steps out: TFLite has no loops over a batch of open size."""
    import keras

    from conrepair.formats.keras.load.framework import flat_layers

    for layer in flat_layers(network):
        cells = [layer, *getattr(layer, "_flatten_layers", list)()]
        recurrent = [cell for cell in cells if isinstance(cell, keras.layers.RNN)]
        if recurrent and all(_steps(node) <= longest for node in layer._inbound_nodes):
            for cell in recurrent:
                cell.unroll = True


def _steps(node: Any) -> float:
    """How many steps to write out so that there's no loop over an open batch; infinite where that isn't possible."""
    batch, steps = node.input_tensors[0].shape[:2]
    return math.inf if batch is not None or steps is None else int(steps)


TFLITE = Converter(
    name="keras-tflite",
    source="keras",
    target="tflite",
    distributions=("tensorflow", "keras"),
    convert=_to_tflite,
    options={
        **OPTIONS,
        "unroll": Option(
            128, "recurrent layers of up to so many steps are written out; 0 keeps their loops", least=0
        ),
    },
    intent=intent,
    calibrates=calibrates,
    as_quantized=as_quantized,
)


# To PyTorch, by Keras's own PyTorch backend, with no ONNX between.
#
# Keras takes one backend a process, and ours is TensorFlow; so another process loads the model and exports it. Not
# automatic: that backend computes some layers otherwise (average pooling whose "same" padding isn't symmetric).


def _to_torch(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    with tempfile.TemporaryDirectory(prefix=".scratch-", dir=folder) as scratch:
        arguments = {"model": asdict(model), "folder": str(folder)}
        variables = {"KERAS_BACKEND": "torch"}
        value = run_script(_SCRIPT, arguments, Path(scratch), what="Keras on PyTorch", variables=variables)
    return str(value["file"])


TORCH = Converter("keras-torch", "keras", "torch", ("keras", "torch"), _to_torch, automatic=False)
