"""TensorFlow SavedModel or frozen graph to ONNX, by tf2onnx, and to TFLite, by TensorFlow's converter.

TFLite is in float unless asked otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.converters.base import Converter, Option
from conrepair.formats.converters.tf2onnx_shared import collecting_often, save
from conrepair.formats.converters.tflite_quantization import OPTIONS, as_quantized, calibrates, intent, write_tflite
from conrepair.formats.models.admission import admitted
from conrepair.formats.models.model import Model
from conrepair.ground.data.feeds import CalibrationFeeds
from conrepair.ground.runtime.errors import ConversionError


def _to_onnx(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import tf2onnx

    from conrepair.formats.tensorflow.load.framework import callable_by_position, load_function
    from conrepair.formats.tensorflow.load.states import states_of

    function, owner = load_function(model)
    if states := ", ".join(variable.name.removesuffix(":0") for variable in states_of(function)):
        raise ConversionError(
            f"the model keeps a state ({states}), and ONNX has no variables: tf2onnx makes inputs of them, whose new "
            "values nothing gives. Make the state an input and an output of the model, or convert it to TFLite."
        )
    wrapped = callable_by_position(function)
    with collecting_often():
        proto, _ = tf2onnx.convert.from_function(
            wrapped, input_signature=wrapped.input_signature, opset=options["opset"]
        )
    del owner  # kept the variables alive until here
    return save(proto, folder)


TF2ONNX = Converter(
    name="savedmodel-onnx-tf2onnx",
    source="tensorflow",
    target="onnx",
    distributions=("tf2onnx", "tensorflow", "onnx"),
    convert=_to_onnx,
    options={"opset": Option(15, "ONNX opset (up to 18)", alternatives=(15, 13, 18))},
)


def _to_tflite(model: Model, folder: Path, options: Mapping[str, Any], feeds: CalibrationFeeds | None = None) -> str:
    import tensorflow as tf

    from conrepair.formats.tensorflow.load.framework import callable_by_position, load_function

    if Path(model.path).is_dir():
        with admitted(model) as path:
            return write_tflite(tf.lite.TFLiteConverter.from_saved_model(str(path)), folder, options, feeds)
    function, _ = load_function(model)
    concrete = callable_by_position(function).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], tf.Module())
    return write_tflite(converter, folder, options, feeds)


TFLITE = Converter(
    name="savedmodel-tflite",
    source="tensorflow",
    target="tflite",
    distributions=("tensorflow",),
    convert=_to_tflite,
    options=OPTIONS,
    intent=intent,
    calibrates=calibrates,
    as_quantized=as_quantized,
)
