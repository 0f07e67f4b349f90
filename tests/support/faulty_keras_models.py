"""Minimal Keras models that tools get wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import faulty_models as faulty
import keras
import numpy as np
import onnx
from keras import layers, ops


@dataclass(frozen=True)
class KerasCase:
    """A function of one Keras tensor, with an input.

    Attributes:
        function: A layer, or a function of layers and operators.
        array: The input, with its batch.
        least: The converted model differs by more than this somewhere.
        left: Operators of TensorFlow or TFLite that stay in the ONNX model.
    """

    function: Callable[[Any], Any]
    array: Any
    least: float = 0.0
    left: frozenset[str] = frozenset()

    def network(self, shape: Sequence[int | None] | None = None) -> keras.Model:
        """With the array's shape as the input's, or another one (without the batch)."""
        batch = self.array.shape[0] if shape is None else None
        given = keras.Input(shape or self.array.shape[1:], batch_size=batch, dtype=self.array.dtype.name)
        keras.utils.set_random_seed(1)
        return keras.Model(given, self.function(given))

    def expected(self, network: keras.Model) -> Any:
        """Keras's answer."""
        return np.asarray(network(self.array, training=False))


def to_onnx(network: keras.Model) -> onnx.ModelProto:
    """By tf2onnx."""
    import tensorflow as tf
    import tf2onnx

    signature = [tf.TensorSpec(tensor.shape, tensor.dtype, name=tensor.name) for tensor in network.inputs]
    return tf2onnx.convert.from_keras(network, signature, opset=15)[0]


def to_tflite(network: keras.Model) -> bytes:
    """By TensorFlow."""
    import tensorflow as tf

    return tf.lite.TFLiteConverter.from_keras_model(network).convert()


def run_tflite(content: bytes, array: Any) -> Any:
    """The only output, with the default delegate."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], array)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


_IMAGE = faulty.normal(1, 6, 6, 4)
_ROWS = faulty.normal(1, 5, 6)
_INTEGERS = np.array([[-7, -3, 3, 7]], np.int32)

TF2ONNX_WRONG = {
    "// of negative integers": KerasCase(lambda x: x // 2, _INTEGERS, 0.5),
    "% of negative integers": KerasCase(lambda x: x % 4, _INTEGERS, 3),
    "resizing by areas": KerasCase(layers.Resizing(4, 9, interpolation="area"), _IMAGE, 0.5),
}

TF2ONNX_LEAVES = {
    "convolution in groups": KerasCase(
        layers.Conv2D(4, 3, groups=2), _IMAGE, left=frozenset({"StatefulPartitionedCall"})
    ),
    "exact GELU": KerasCase(layers.Activation("gelu"), _ROWS, left=frozenset({"Erfc"})),
    "CELU": KerasCase(layers.Activation("celu"), _ROWS, left=frozenset({"Expm1"})),
    "log1p": KerasCase(lambda x: ops.log1p(ops.absolute(x)), _ROWS, left=frozenset({"Log1p"})),
    "argmax": KerasCase(lambda x: ops.argmax(x, 1), _ROWS, left=frozenset({"Bitcast"})),
    "slice_update": KerasCase(
        lambda x: ops.slice_update(x, (0, 1, 1), ops.ones((1, 2, 2))),
        _ROWS,
        left=frozenset({"XlaDynamicUpdateSlice"}),
    ),
    "resizing with antialiasing": KerasCase(
        lambda x: ops.image.resize(x, (3, 3), antialias=True), _IMAGE, left=frozenset({"ScaleAndTranslate"})
    ),
    "Discretization": KerasCase(layers.Discretization([-1.0, 0.0, 1.0]), _ROWS, left=frozenset({"Bucketize"})),
}

NORMALIZED = KerasCase(layers.Normalization(mean=[1.0, 2.0, 3.0], variance=[4.0, 5.0, 6.0]), faulty.normal(1, 5, 3))
TF2ONNX_UNLOADABLE = KerasCase(layers.Conv2DTranspose(3, 3, strides=2, output_padding=1), _IMAGE)

TFLITE_WRONG = {
    "softplus of large numbers": KerasCase(ops.softplus, faulty.real(-200, 3, 190)[None], 100.0),
    "log_sigmoid far below zero": KerasCase(ops.log_sigmoid, faulty.real(-200, -90, 3)[None], 100.0),
}

TFLITE_REFUSES = {
    "Conv2DTranspose, dilated": KerasCase(layers.Conv2DTranspose(3, 3, dilation_rate=2), _IMAGE),
    "AveragePooling3D": KerasCase(layers.AveragePooling3D(2), faulty.normal(1, 4, 4, 4, 2)),
    "resizing, bicubic": KerasCase(layers.Resizing(4, 9, interpolation="bicubic"), _IMAGE),
    "argmax": KerasCase(lambda x: ops.argmax(x, 1), _ROWS),
    "erf": KerasCase(ops.erf, _ROWS),
}

# From TFLite to ONNX by tf2onnx.
CLIPPED = KerasCase(lambda x: ops.hard_tanh(x * 4), _ROWS, 3)
FUSED_GELU = KerasCase(layers.Activation("gelu"), _ROWS, left=frozenset({"TFL_GELU"}))

OPEN_SIZES = KerasCase(layers.Conv2D(3, 3), _IMAGE)

# Shapes whose second operand `keras.ops.add` takes for a bias.
ADDED = [((3, 4, 4), (1, 4, 1)), ((4, 4), (4, 1)), ((2, 3, 4, 4), (1, 1, 4, 1)), ((2, 3, 3), (3, 1))]
