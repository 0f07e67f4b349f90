"""Small real networks for TFLite, and single operators written with TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import small_models as small
import tensorflow as tf
from keras import layers

from conrepair.formats.models.model import Model
from conrepair.formats.tflite.load.framework import FRAMEWORK
from conrepair.ground.data.tensor_spec import TensorSpec

Array = Any


def residual() -> keras.Model:
    """Shortcuts, a strided convolution with "SAME", a depth multiplier, dilation, a transposed convolution."""
    keras.utils.set_random_seed(1)
    image = keras.Input((small.HEIGHT, small.WIDTH, small.CHANNELS), name="image")
    one = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(image)
    two = layers.DepthwiseConv2D(3, depth_multiplier=2, padding="same", activation="relu6")(one)
    three = layers.Conv2D(6, 3, padding="same", dilation_rate=2)(two)
    mixed = layers.Add()([one, three])
    wide = layers.Conv2DTranspose(4, 3, strides=2, padding="same")(mixed)
    cut = layers.Conv2D(4, 4, strides=3)(wide)
    joined = layers.Concatenate()([cut, layers.LeakyReLU(0.1)(cut)])
    return keras.Model(image, layers.Dense(small.CLASSES)(layers.GlobalAveragePooling2D()(joined)))


def attention() -> keras.Model:
    """A transformer encoder's layer of whole numbers."""
    keras.utils.set_random_seed(2)
    text = keras.Input((small.TOKENS,), dtype="int32", name="text")
    rows = layers.Embedding(small.WORDS, 8)(text)
    attended = layers.MultiHeadAttention(2, 4)(rows, rows)
    normal = layers.LayerNormalization()(layers.Add()([rows, attended]))
    wide = layers.Dense(12, activation="gelu")(normal)
    result = layers.LayerNormalization()(layers.Add()([normal, layers.Dense(8)(wide)]))
    return keras.Model(text, layers.Softmax()(layers.Dense(small.CLASSES)(layers.Flatten()(result))))


def perceptron() -> keras.Model:
    """Dense layers alone; wide enough for dynamic range quantization."""
    keras.utils.set_random_seed(3)
    vector = keras.Input((40,), name="vector")
    hidden = layers.Dense(48, activation="relu")(vector)
    return keras.Model(vector, layers.Dense(32, activation="tanh")(layers.Dense(48)(hidden)))


def lstm() -> keras.Model:
    """One fused operator with a state, when the batch is fixed."""
    keras.utils.set_random_seed(4)
    rows = keras.Input((7, 5), name="rows")
    return keras.Model(rows, layers.Dense(3)(layers.LSTM(6, return_sequences=True)(rows)))


def gru() -> keras.Model:
    """A loop: a body that is another subgraph."""
    keras.utils.set_random_seed(5)
    rows = keras.Input((7, 5), name="rows")
    return keras.Model(rows, layers.Dense(3)(layers.GRU(6)(rows)))


NETWORKS: dict[str, Callable[[], keras.Model]] = {
    "convnet": small.keras_convnet,
    "residual": residual,
    "attention": attention,
    "perceptron": perceptron,
    "lstm": lstm,
    "gru": gru,
    "pair": small.keras_pair,
    "twins": small.keras_twins,
    "text": small.keras_text,
}


def written(network: keras.Model, path: Path, kind: str = "float") -> Model:
    """Convert.

    Args:
        network: A Keras model.
        path: Of the file.
        kind: "float", "float16", "dynamic-range", "full-int8", or "int16" (for activations).
    """
    converter = tf.lite.TFLiteConverter.from_keras_model(network)
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind in {"full-int8", "int16"}:
        samples = [
            {tensor.name: _random(tensor.shape, tensor.dtype, seed) for tensor in network.inputs} for seed in range(8)
        ]
        converter.representative_dataset = lambda: iter(samples)
        sets = tf.lite.OpsSet
        wide = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [wide if kind == "int16" else sets.TFLITE_BUILTINS_INT8]
    if kind == "full-int8":
        converter.inference_input_type = converter.inference_output_type = tf.int8
    path.write_bytes(converter.convert())
    return small.model_of("tflite", path)


def fixed(network: keras.Model, batch: int) -> keras.Model:
    """The same network with a number where the symbolic batch was."""
    inputs = [
        keras.Input(batch_shape=(batch, *item.shape[1:]), dtype=item.dtype, name=item.name) for item in network.inputs
    ]
    return keras.Model(inputs, network(inputs if len(inputs) > 1 else inputs[0]))


START = 1.5


def counting(path: Path) -> Model:
    """Adds what it's given to a variable, and multiplies with that."""

    class Counting(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.total = tf.Variable(tf.fill([2, 3], START))

        @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32)], autograph=False)
        def call(self, given: Any) -> Any:
            self.total.assign_add(given)
            return self.total * given

    module = Counting()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.call.get_concrete_function()], module)
    converter.experimental_enable_resource_variables = True
    path.write_bytes(converter.convert())
    return small.model_of("tflite", path)


def concrete(model: Model, batch: int = 2) -> list[TensorSpec]:
    """The model's inputs with sizes instead of symbols."""
    return [
        replace(spec, shape=tuple(batch if isinstance(size, str) else size for size in spec.shape))
        for spec in FRAMEWORK.load(model).inputs
    ]


def feeds(inputs: Sequence[TensorSpec], seed: int = 0) -> dict[str, Array]:
    """Values for a model's inputs."""
    return {
        spec.name: _random(spec.shape, "float32" if spec.stands_for_reals else spec.dtype, seed + place)
        for place, spec in enumerate(inputs)
    }


def _random(shape: Sequence[Any], dtype: str, seed: int) -> Array:
    generator, sizes = np.random.default_rng(seed), [size or 1 for size in shape]
    if dtype.startswith("float"):
        return generator.normal(size=sizes).astype(dtype)
    return generator.integers(0, small.WORDS, sizes).astype(dtype)


# --- Single operators ---


@dataclass(frozen=True)
class TensorFlowCase:
    """A function of TensorFlow's.

    Attributes:
        function: Of tensors.
        shapes: Of the inputs, float32 unless dtypes say otherwise.
        op: What the graph must have.
        dtypes: Of the inputs.
    """

    function: Callable[..., Any]
    shapes: Sequence[Sequence[int]]
    op: str
    dtypes: Sequence[str] = ()

    def convert(self, path: Path) -> Model:
        """Write it as a TFLite file."""
        dtypes = self.dtypes or ["float32"] * len(self.shapes)
        signature = [tf.TensorSpec(shape, dtype) for shape, dtype in zip(self.shapes, dtypes, strict=True)]
        module = tf.Module()
        module.call = tf.function(self.function, input_signature=signature, autograph=False)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([module.call.get_concrete_function()], module)
        path.write_bytes(converter.convert())
        return small.model_of("tflite", path)


def _weights(*shape: int) -> Array:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


_IMAGE = [(2, 7, 6, 4)]
_ROWS = [(2, 5, 6)]
_WHOLE = {"dtypes": ("int32", "int32")}

CASES: dict[str, TensorFlowCase] = {
    "conv, same, strided": TensorFlowCase(
        lambda x: tf.nn.relu6(tf.nn.conv2d(x, _weights(4, 3, 4, 5), (2, 3), "SAME") + _weights(5)), _IMAGE, "Conv"
    ),
    "conv in groups": TensorFlowCase(lambda x: tf.nn.conv2d(x, _weights(3, 3, 2, 6), 1, "VALID"), _IMAGE, "Conv"),
    "depthwise, multiplied": TensorFlowCase(
        lambda x: tf.nn.depthwise_conv2d(x, _weights(3, 2, 4, 2), (1, 1, 1, 1), "SAME"), _IMAGE, "Conv"
    ),
    "conv 3d": TensorFlowCase(
        lambda x: tf.nn.conv3d(x, _weights(3, 2, 2, 4, 3), (1, 2, 1, 2, 1), "SAME"), [(1, 5, 6, 7, 4)], "Conv"
    ),
    "transposed, same": TensorFlowCase(
        lambda x: tf.nn.conv2d_transpose(x, _weights(3, 3, 5, 4), (2, 14, 12, 5), 2, "SAME"), _IMAGE, "ConvTranspose"
    ),
    "transposed, odd": TensorFlowCase(
        lambda x: tf.nn.conv2d_transpose(x, _weights(3, 4, 5, 4), (2, 13, 12, 5), 2, "SAME"), _IMAGE, "ConvTranspose"
    ),
    "transposed, small kernel": TensorFlowCase(
        lambda x: tf.nn.conv2d_transpose(x, _weights(2, 2, 5, 4), (2, 21, 18, 5), 3, "SAME"), _IMAGE, "ConvTranspose"
    ),
    "transposed, valid": TensorFlowCase(
        lambda x: tf.nn.conv2d_transpose(x, _weights(3, 3, 5, 4), (2, 15, 13, 5), 2, "VALID"), _IMAGE, "ConvTranspose"
    ),
    "average, same": TensorFlowCase(lambda x: tf.nn.avg_pool2d(x, (3, 2), 2, "SAME"), _IMAGE, "AveragePool"),
    "maximum, same": TensorFlowCase(lambda x: tf.nn.max_pool2d(x, (3, 2), 2, "SAME"), _IMAGE, "MaxPool"),
    "fully connected of a picture": TensorFlowCase(
        lambda x: tf.nn.relu(tf.matmul(x, _weights(4, 3)) + _weights(3)), _IMAGE, "MatMul"
    ),
    "product of two": TensorFlowCase(
        lambda x, y: tf.matmul(x, y, transpose_b=True), [(2, 3, 4), (2, 5, 4)], "MatMul"
    ),
    "product with matrices": TensorFlowCase(lambda x: tf.matmul(x, _weights(2, 6, 3)), _ROWS, "MatMul"),
    "product with transposed matrices": TensorFlowCase(
        lambda x: tf.matmul(x, _weights(2, 3, 6), transpose_b=True), _ROWS, "MatMul"
    ),
    "product from the left": TensorFlowCase(lambda x: tf.matmul(_weights(2, 3, 5), x), _ROWS, "MatMul"),
    "product from the left, transposed": TensorFlowCase(
        lambda x: tf.matmul(_weights(2, 5, 3), x, transpose_a=True), _ROWS, "MatMul"
    ),
    "constant minus": TensorFlowCase(lambda x: 2.0 - x, _ROWS, "Sub"),
    "minus constant": TensorFlowCase(lambda x: x - _weights(6), _ROWS, "Sub"),
    "constant divided": TensorFlowCase(lambda x: _weights(5, 6) / x, _ROWS, "Div"),
    "fused difference": TensorFlowCase(lambda x, y: tf.nn.relu(x - y), [(2, 3), (2, 3)], "Sub"),
    "power": TensorFlowCase(lambda x: tf.pow(tf.abs(x), 1.5), _ROWS, "Pow"),
    "maximum of two": TensorFlowCase(lambda x, y: tf.maximum(x, y), [(2, 3), (1, 3)], "Max"),
    "modulus": TensorFlowCase(lambda x, y: tf.math.floormod(x - 12, y + 1), [(3, 4), (3, 4)], "Mod", **_WHOLE),
    "squared difference": TensorFlowCase(lambda x, y: tf.math.squared_difference(x, y), [(2, 3), (1, 3)], "Square"),
    "other than": TensorFlowCase(
        lambda x, y: tf.cast(tf.not_equal(x, y), tf.float32), [(3, 4), (3, 4)], "Not", **_WHOLE
    ),
    "reversed": TensorFlowCase(lambda x: tf.reverse(x, (1,)), _ROWS, "Slice"),
    "comparison": TensorFlowCase(lambda x, y: tf.cast(x < y, tf.float32), [(2, 3), (2, 3)], "Less"),
    "choice": TensorFlowCase(lambda x, y: tf.where(x < y, x, _weights(3)), [(2, 3), (2, 3)], "Where"),
    "mean": TensorFlowCase(lambda x: tf.reduce_mean(x, (1, -1)), _IMAGE, "ReduceMean"),
    "sum, axes kept": TensorFlowCase(lambda x: tf.reduce_sum(x, 2, keepdims=True), _IMAGE, "ReduceSum"),
    "greatest": TensorFlowCase(lambda x: tf.reduce_max(x, -1), _IMAGE, "ReduceMax"),
    "least": TensorFlowCase(lambda x: tf.reduce_min(x, (0, 1)), _IMAGE, "ReduceMin"),
    "product": TensorFlowCase(lambda x: tf.reduce_prod(x, 1), _ROWS, "ReduceProd"),
    "greatest's place": TensorFlowCase(lambda x: tf.argmax(x, -1, tf.int32), _IMAGE, "ArgMax"),
    "least's place": TensorFlowCase(lambda x: tf.argmin(x, 1), _IMAGE, "ArgMin"),
    "running sum": TensorFlowCase(lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), _ROWS, "CumSum"),
    "transpose": TensorFlowCase(lambda x: tf.transpose(x, (0, 3, 1, 2)), _IMAGE, "Transpose"),
    "pad": TensorFlowCase(lambda x: tf.pad(x, ((0, 0), (1, 2), (3, 0), (0, 1))), _IMAGE, "Pad"),
    "pad with ones": TensorFlowCase(
        lambda x: tf.pad(x, ((0, 0), (1, 2), (3, 0)), constant_values=1.0), _ROWS, "Pad"
    ),
    "pad, mirrored": TensorFlowCase(lambda x: tf.pad(x, ((0, 0), (1, 2), (3, 0)), "REFLECT"), _ROWS, "Pad"),
    "pad, symmetric": TensorFlowCase(lambda x: tf.pad(x, ((0, 0), (1, 2), (3, 0)), "SYMMETRIC"), _ROWS, "Pad"),
    "slice": TensorFlowCase(lambda x: tf.slice(x, (0, 1, 2), (2, 3, -1)), _ROWS, "Slice"),
    "strided": TensorFlowCase(lambda x: x[:, 1:6:2, ::-1], _IMAGE, "Slice"),
    "strided, an axis less and one more": TensorFlowCase(lambda x: x[:, -1, ..., tf.newaxis, 1:3], _IMAGE, "Slice"),
    "split": TensorFlowCase(lambda x: tf.concat(tf.split(x, 3, 2)[::-1], 1), _ROWS, "Split"),
    "uneven split": TensorFlowCase(lambda x: tf.concat(tf.split(x, (1, 4), 1)[::-1], 1), _ROWS, "Split"),
    "concat with a constant": TensorFlowCase(lambda x: tf.concat([_weights(2, 1, 6), x], 1), _ROWS, "Concat"),
    "concat with two constants": TensorFlowCase(
        lambda x: tf.concat([_weights(2, 1, 6), x, _weights(2, 2, 6)], 1), _ROWS, "Concat"
    ),
    "stack": TensorFlowCase(lambda x, y: tf.stack([x, y], -1), [(2, 3), (2, 3)], "Stack"),
    "tile": TensorFlowCase(lambda x: tf.tile(x, (1, 2, 3)), _ROWS, "Tile"),
    "expand": TensorFlowCase(lambda x: tf.broadcast_to(x, (4, 2, 5, 6)), _ROWS, "Expand"),
    "lookup": TensorFlowCase(lambda x: tf.gather(_weights(23, 3), x), [(2, 4)], "Gather", ("int32",)),
    "picking": TensorFlowCase(lambda x: tf.gather(x, (2, 0, 2), axis=1), _ROWS, "Gather"),
    "cast": TensorFlowCase(lambda x: tf.cast(x, tf.int32), _ROWS, "Cast"),
    "bilinear, half pixels": TensorFlowCase(lambda x: tf.image.resize(x, (5, 11)), _IMAGE, "Resize"),
    "bilinear, corners": TensorFlowCase(
        lambda x: tf.compat.v1.image.resize_bilinear(x, (5, 11), align_corners=True), _IMAGE, "Resize"
    ),
    "bilinear, asymmetric": TensorFlowCase(
        lambda x: tf.compat.v1.image.resize_bilinear(x, (5, 11)), _IMAGE, "Resize"
    ),
    "nearest, half pixels": TensorFlowCase(
        lambda x: tf.image.resize(x, (5, 11), "nearest"), _IMAGE, "Resize"
    ),
    "nearest, corners": TensorFlowCase(
        lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, (5, 11), align_corners=True), _IMAGE, "Resize"
    ),
    "nearest, asymmetric": TensorFlowCase(
        lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, (5, 11)), _IMAGE, "Resize"
    ),
    "depth to space": TensorFlowCase(lambda x: tf.nn.depth_to_space(x, 2), [(2, 3, 4, 12)], "DepthToSpace"),
    "space to depth": TensorFlowCase(lambda x: tf.nn.space_to_depth(x, 2), [(2, 4, 6, 3)], "SpaceToDepth"),
    "local response": TensorFlowCase(
        lambda x: tf.nn.local_response_normalization(x, 1, 2.0, 0.3, 0.7), _IMAGE, "LRN"
    ),
    "unit length": TensorFlowCase(lambda x: tf.nn.l2_normalize(x, -1), _IMAGE, "LpNormalization"),
    "softmax": TensorFlowCase(tf.nn.softmax, _ROWS, "Softmax"),
    "log softmax": TensorFlowCase(tf.nn.log_softmax, _ROWS, "LogSoftmax"),
    "elu": TensorFlowCase(tf.nn.elu, _ROWS, "Elu"),
    "leaky": TensorFlowCase(lambda x: tf.nn.leaky_relu(x, 0.3), _ROWS, "LeakyRelu"),
    "prelu": TensorFlowCase(lambda x: tf.nn.relu(x) + _weights(6) * tf.minimum(x, 0.0) , _ROWS, "Add"),
    "gelu": TensorFlowCase(lambda x: tf.nn.gelu(x, approximate=True), _ROWS, "Gelu"),
    "hard swish": TensorFlowCase(lambda x: x * tf.nn.relu6(x + 3) * (1 / 6), _ROWS, "HardSwish"),
    "between minus one and one": TensorFlowCase(lambda x: tf.clip_by_value(x, -1.0, 1.0), _ROWS, "Clip"),
    "rounding": TensorFlowCase(lambda x: tf.round(x) + tf.floor(x) + tf.math.ceil(x), _ROWS, "Round"),
    "waves": TensorFlowCase(lambda x: tf.sin(x) * tf.cos(x), _ROWS, "Sin"),
    "roots": TensorFlowCase(lambda x: tf.sqrt(tf.exp(x)) + tf.math.rsqrt(tf.abs(x) + 1), _ROWS, "Rsqrt"),
}  # fmt: skip
