"""Keras to TFLite by TensorFlow's converter, in float unless asked otherwise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.tflite_quantization import OPTIONS, calibrates, intent, write_tflite
from conrepair.data.calibration import CalibrationFeeds
from conrepair.frameworks.model import Model
from conrepair.runtime.notes import note

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any], feeds: CalibrationFeeds | None = None) -> str:
    import tensorflow as tf

    from conrepair.frameworks.keras import computed_in, load_flat_keras, narrower_type

    network = load_flat_keras(model)
    if narrower := narrower_type(network):
        network = computed_in(network, "float32")
        note(f"it computes in float32, as its weights are: TFLite has no kernels of {narrower}")
    _unroll(network, options["unroll"])
    return write_tflite(tf.lite.TFLiteConverter.from_keras_model(network), folder, options, feeds)


def _unroll(network: Any, longest: int) -> None:
    """Let recurrent layers write their steps out: TFLite has no loops over a batch of open size."""
    import keras

    from conrepair.frameworks.keras import flat_layers

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


CONVERTER = Converter(
    name="keras-tflite",
    source="keras",
    target="tflite",
    distributions=("tensorflow", "keras"),
    convert=_convert,
    options={
        **OPTIONS,
        "unroll": Option(
            128, "recurrent layers of up to so many steps are written out; 0 keeps their loops", least=0
        ),
    },
    intent=intent,
    calibrates=calibrates,
)
