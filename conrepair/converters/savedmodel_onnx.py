"""TensorFlow SavedModel or frozen graph to ONNX by tf2onnx."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.tf2onnx_result import save
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import tensorflow as tf
    import tf2onnx

    from conrepair.frameworks.tensorflow import load_function

    function, owner = load_function(model)
    specs = function.structured_input_signature[1]
    # tf2onnx names inputs after the arguments, so they're given the signature's names.
    signature = [tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in specs.items()]

    def call(*arguments: Any) -> Any:
        return function(**dict(zip(specs, arguments, strict=True)))

    # Autograph has nothing to do here, and would leave a file in the temporary folder.
    wrapped = tf.function(call, autograph=False)
    proto, _ = tf2onnx.convert.from_function(wrapped, input_signature=signature, opset=options["opset"])
    del owner  # kept the variables alive until here
    return save(proto, folder)


CONVERTER = Converter(
    name="savedmodel-onnx-tf2onnx",
    source="tensorflow",
    target="onnx",
    distributions=("tf2onnx", "tensorflow", "onnx"),
    needs=frozenset({"tensorflow"}),
    convert=_convert,
    options={"opset": Option(15, "ONNX opset (up to 18)")},
)
