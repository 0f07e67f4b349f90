"""Small real networks for tests. Pictures are 12 x 10 and channel counts odd, so that layout mistakes show.

Frameworks are imported where they're used: a test file pays only for its own.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.formats.models.model import Model
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.whole import sha256_of

Array = npt.NDArray[Any]

HEIGHT, WIDTH, CHANNELS, CLASSES = 12, 10, 3, 6
FEATURES = 4  # of the vector that the networks with two inputs take
WORDS = 23  # rows of the embedding tables
TOKENS = 5  # length of a text
IMAGE = TensorSpec("image", ("batch", CHANNELS, HEIGHT, WIDTH), "float32")
PAIR = (TensorSpec("", ("batch", CHANNELS, HEIGHT, WIDTH), "float32"), TensorSpec("", ("batch", FEATURES), "float32"))
TEXT = TensorSpec("", ("batch", TOKENS), "int64")


def model_of(framework: str, path: Path, **fields: Any) -> Model:
    return Model(framework, str(path), sha256_of(path), **fields)


def images(count: int = 2, *, channels_last: bool = False, seed: int = 0) -> Array:
    values = np.random.default_rng(seed).normal(size=(count, CHANNELS, HEIGHT, WIDTH)).astype(np.float32)
    return np.ascontiguousarray(values.transpose(0, 2, 3, 1)) if channels_last else values


def vectors(count: int = 2, size: int = FEATURES, *, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)


def tokens(count: int = 2, *, dtype: str = "int64") -> Array:
    """Reaches the first and the last row of the table."""
    values = np.random.default_rng(2).integers(0, WORDS, (count, TOKENS))
    values[0, :2] = 0, WORDS - 1
    return values.astype(dtype)


def relative_l2(reference: Array, candidate: Array) -> float:
    assert reference.shape == candidate.shape, (reference.shape, candidate.shape)
    one, two = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    return float(np.linalg.norm(one - two) / np.linalg.norm(one))


def damaged_copies(source: Path, folder: Path) -> list[Path]:
    """A file that is empty, of random bytes, and cut off at several lengths; the suffix stays."""
    content = source.read_bytes()
    parts = {
        "empty": b"",
        "one_byte": content[:1],
        "random": random.Random(0).randbytes(len(content)),
        "zeros": bytes(len(content)),
        "head": content[:24],
        "half": content[: len(content) // 2],
        "without_end": content[:-7],
    }
    paths = []
    for name, part in parts.items():
        paths.append(folder / f"{name}{source.suffix}")
        paths[-1].write_bytes(part)
    return paths


# --- ONNX ---


def onnx_convnet(
    path: Path, *, opset: int = 17, batch: int | str = "batch", half: bool = False, external: bool = False
) -> Path:
    """Conv, BatchNormalization, Clip, depthwise Conv, MaxPool, Flatten, Gemm, Softmax."""
    import onnx
    from onnx import helper, numpy_helper

    generator = np.random.default_rng(3)
    kind = np.float16 if half else np.float32
    weights: list[Any] = []

    def weight(name: str, *shape: int, positive: bool = False) -> str:
        values = generator.normal(size=shape) * (0.4 if len(shape) > 1 else 0.2)
        weights.append(numpy_helper.from_array((np.abs(values) + 0.5 if positive else values).astype(kind), name))
        return name

    def constant(name: str, value: float) -> str:
        weights.append(numpy_helper.from_array(np.array(value, kind), name))
        return name

    node = helper.make_node
    norm = [weight(f"norm.{part}", 5, positive=part in {"scale", "var"}) for part in ("scale", "bias", "mean", "var")]
    nodes = [
        node("Conv", ["image", weight("first", 5, 3, 3, 3)], ["c1"], "conv", strides=[2, 2], pads=[0, 1, 1, 0]),
        node("BatchNormalization", ["c1", *norm], ["n1"], "norm"),
        node("Clip", ["n1", constant("low", 0), constant("high", 6)], ["r1"], "relu6"),
        node("Conv", ["r1", weight("depth", 5, 1, 3, 3)], ["c2"], "depthwise", group=5, pads=[1, 1, 1, 1]),
        node("MaxPool", ["c2"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p"], ["f"], "flatten"),
        node("Gemm", ["f", weight("dense", CLASSES, 30), weight("bias", CLASSES)], ["g"], "dense", transB=1),
        node("Softmax", ["g"], ["probabilities"], "softmax"),
    ]
    element = onnx.TensorProto.FLOAT16 if half else onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", element, [batch, CHANNELS, HEIGHT, WIDTH])],
        [helper.make_tensor_value_info("probabilities", element, [batch, CLASSES])],
        weights,
    )
    return save_onnx(path, graph, opset=opset, external=external)


def save_onnx(path: Path, graph: Any, *, opset: int = 17, external: bool = False, check: bool = True) -> Path:
    import onnx
    from onnx import helper

    proto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="tests", ir_version=8
    )
    if check:
        onnx.checker.check_model(proto)
    if external:
        onnx.save(proto, path, save_as_external_data=True, location=f"{path.stem}.data", size_threshold=0)
    else:
        onnx.save(proto, path)
    return path


def onnx_pair(path: Path) -> Path:
    """Two inputs of different shapes, two outputs of different types."""
    import onnx
    from onnx import helper, numpy_helper

    generator = np.random.default_rng(4)
    float32, int64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    weight = numpy_helper.from_array(generator.normal(size=(FEATURES, CHANNELS)).astype(np.float32), "weight")
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["image"], ["p"]),
            helper.make_node("Flatten", ["p"], ["means"]),
            helper.make_node("MatMul", ["vector", "weight"], ["projected"]),
            helper.make_node("Add", ["means", "projected"], ["sum"]),
            helper.make_node("ArgMax", ["sum"], ["best"], axis=1, keepdims=0),
        ],
        "pair",
        [
            helper.make_tensor_value_info("vector", float32, ["batch", FEATURES]),
            helper.make_tensor_value_info("image", float32, ["batch", CHANNELS, "height", "width"]),
        ],
        [
            helper.make_tensor_value_info("sum", float32, ["batch", CHANNELS]),
            helper.make_tensor_value_info("best", int64, ["batch"]),
        ],
        [weight],
    )
    return save_onnx(path, graph)


def onnx_twins(path: Path) -> Path:
    """Two inputs and two outputs that only their names and order tell apart; neither is alphabetical."""
    import onnx
    from onnx import helper

    def value(name: str) -> Any:
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", FEATURES])

    graph = helper.make_graph(
        [
            helper.make_node("Sin", ["second"], ["bent"]),
            helper.make_node("Add", ["bent", "first"], ["sum"]),
            helper.make_node("Sub", ["bent", "first"], ["difference"]),
        ],
        "twins",
        [value("second"), value("first")],
        [value("sum"), value("difference")],
    )
    return save_onnx(path, graph)


def onnx_text(path: Path) -> Path:
    """An embedding of whole numbers."""
    import onnx
    from onnx import helper, numpy_helper

    generator = np.random.default_rng(14)
    table = numpy_helper.from_array(generator.normal(size=(WORDS, 7)).astype(np.float32), "table")
    weight = numpy_helper.from_array(generator.normal(size=(7 * TOKENS, CLASSES)).astype(np.float32), "weight")
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "text"], ["vectors"]),
            helper.make_node("Flatten", ["vectors"], ["flat"]),
            helper.make_node("MatMul", ["flat", "weight"], ["logits"]),
        ],
        "text",
        [helper.make_tensor_value_info("text", onnx.TensorProto.INT64, ["batch", TOKENS])],
        [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", CLASSES])],
        [table, weight],
    )
    return save_onnx(path, graph)


# --- PyTorch ---


def torch_convnet(*, seed: int = 5) -> Any:
    """Conv, BatchNorm, ReLU6, depthwise Conv, pools, Linear; every statistic is away from its default."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    network = nn.Sequential(
        OrderedDict(
            conv=nn.Conv2d(CHANNELS, 5, 3, stride=2, padding=1, bias=False),
            norm=nn.BatchNorm2d(5),
            relu6=nn.ReLU6(),
            depthwise=nn.Conv2d(5, 5, 3, padding=1, groups=5, bias=False),
            norm_2=nn.BatchNorm2d(5),
            relu6_2=nn.ReLU6(),
            average=nn.AvgPool2d(3, stride=1, padding=1),
            pointwise=nn.Conv2d(5, 7, 1),
            pool=nn.MaxPool2d(2),
            flatten=nn.Flatten(),
            dense=nn.Linear(42, CLASSES),
        )
    )
    return randomized(network)


def randomized(network: Any) -> Any:
    """Give BatchNorms weights and statistics that aren't 1 and 0."""
    import torch

    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                for tensor, low in (
                    (module.weight, 0.5), (module.running_var, 0.5), (module.bias, -0.5), (module.running_mean, -0.5),
                ):  # fmt: skip
                    tensor.uniform_(low, low + 1)
    return network.eval()


def torch_pair() -> Any:
    """Takes an image and a vector, gives logits and a picture."""
    import torch
    from torch import nn

    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(CHANNELS, 5, 3, stride=2, padding=1)
            self.dense = nn.Linear(FEATURES, 5)
            self.last = nn.Linear(5, CLASSES)

        def forward(self, image: torch.Tensor, vector: torch.Tensor) -> dict[str, torch.Tensor]:
            picture = torch.relu(self.conv(image))
            mixed = picture.mean((2, 3)) * self.dense(vector)
            return {"logits": self.last(mixed), "picture": picture}

    torch.manual_seed(6)
    return Pair().eval()


def torch_twins() -> Any:
    """Two inputs and two outputs that only their names and order tell apart; neither is alphabetical."""
    import torch
    from torch import nn

    class Twins(nn.Module):
        def forward(self, second: torch.Tensor, first: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"sum": torch.sin(second) + 2 * first, "difference": torch.sin(second) - 3 * first}

    return Twins().eval()


def torch_text() -> Any:
    """An embedding of whole numbers."""
    import torch
    from torch import nn

    torch.manual_seed(7)
    return nn.Sequential(nn.Embedding(WORDS, 7), nn.Flatten(), nn.Linear(7 * TOKENS, CLASSES)).eval()


def export_pt2(network: Any, examples: Sequence[Any], path: Path, *, dynamic: bool = True) -> Path:
    import torch

    shapes = tuple({0: torch.export.Dim.DYNAMIC} for _ in examples) if dynamic else None
    with torch.no_grad():
        program = torch.export.export(network, tuple(examples), dynamic_shapes=shapes)
    torch.export.save(program, path)
    return path


# --- Keras ---


def keras_convnet(*, nested: bool = False) -> Any:
    """Conv, BatchNormalization, ReLU6, depthwise Conv, pools, Dense."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(8)
    image = keras.Input((HEIGHT, WIDTH, CHANNELS), name="image")
    body = [
        layers.Conv2D(5, 3, strides=2, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(6.0),
        layers.DepthwiseConv2D(3, padding="same", use_bias=False),
        layers.BatchNormalization(),
        layers.ReLU(6.0),
        layers.AveragePooling2D(3, strides=1, padding="same"),
        layers.Conv2D(7, 1),
        layers.MaxPooling2D(2),
    ]
    if nested:
        inner = keras.Sequential(body, name="body")
        picture = inner(image)
    else:
        picture = image
        for layer in body:
            picture = layer(picture)
    logits = layers.Dense(CLASSES, name="logits")(layers.Flatten()(picture))
    network = keras.Model(image, logits, name="small")
    return keras_randomized(network)


def keras_randomized(network: Any) -> Any:
    """Give all weights that are constants (biases, statistics) other values."""
    generator = np.random.default_rng(9)
    network.set_weights(
        [
            generator.uniform(0.5, 1.5, value.shape) if value.ndim == 1 else value * 2
            for value in network.get_weights()
        ]
    )
    return network


def keras_pair(*, as_dict: bool = False) -> Any:
    """Takes an image and a vector, gives logits and a picture; input names are not in alphabetical order."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(10)
    image = keras.Input((HEIGHT, WIDTH, CHANNELS), name="scene")
    vector = keras.Input((FEATURES,), name="context")
    picture = layers.Conv2D(5, 3, strides=2, padding="same", activation="relu", name="picture")(image)
    mixed = layers.Multiply()([layers.GlobalAveragePooling2D()(picture), layers.Dense(5)(vector)])
    logits = layers.Dense(CLASSES, name="logits")(mixed)
    if as_dict:
        return keras.Model({"scene": image, "context": vector}, {"picture": picture, "logits": logits})
    return keras.Model([image, vector], [picture, logits])


def keras_twins() -> Any:
    """Two inputs and two outputs that only their names and order tell apart; neither is alphabetical."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(13)
    second, first = keras.Input((FEATURES,), name="second"), keras.Input((FEATURES,), name="first")
    mixed = layers.Subtract()([layers.Dense(5)(second), layers.Dense(5)(first)])
    outputs = [layers.Dense(3, name="sum")(mixed), layers.Dense(3, name="difference")(layers.ReLU()(mixed))]
    return keras.Model([second, first], outputs)


def keras_text() -> Any:
    import keras
    from keras import layers

    keras.utils.set_random_seed(11)
    text = keras.Input((TOKENS,), dtype="int32", name="text")
    flat = layers.Flatten()(layers.Embedding(WORDS, 7)(text))
    return keras.Model(text, layers.Dense(CLASSES, name="logits")(flat))


def keras_drawn() -> Any:
    """With the weights that Keras draws."""
    import keras

    return keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(CLASSES)])


def fixed_batch(network: Any, batch: int) -> Any:
    """The same Keras model with a number where the symbolic batch was."""
    import keras

    item = network.inputs[0]
    image = keras.Input(batch_shape=(batch, *item.shape[1:]), dtype=item.dtype, name=item.name)
    fixed = keras.models.clone_model(network, input_tensors=image)
    fixed.set_weights(network.get_weights())
    return fixed


# --- TensorFlow ---


def tensorflow_pair() -> Any:
    """A module with a signature whose arguments are not in alphabetical order."""
    import tensorflow as tf

    generator = np.random.default_rng(12)

    class Pair(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = tf.Variable(generator.normal(size=(3, 3, CHANNELS, 5)).astype(np.float32), name="kernel")
            self.weight = tf.Variable(generator.normal(size=(FEATURES, 5)).astype(np.float32), name="weight")

        @tf.function(
            autograph=False,
            input_signature=[
                tf.TensorSpec([None, HEIGHT, WIDTH, CHANNELS], tf.float32, name="scene"),
                tf.TensorSpec([None, FEATURES], tf.float32, name="context"),
            ],
        )
        def __call__(self, scene: Any, context: Any) -> dict[str, Any]:
            picture = tf.nn.relu(tf.nn.conv2d(scene, self.kernel, 2, "SAME"))
            mixed = tf.reduce_mean(picture, (1, 2)) * tf.matmul(context, self.weight)
            return {"picture": picture, "mixed": mixed}

    return Pair()


def tensorflow_twins() -> Any:
    """Two inputs and two outputs that only their names and order tell apart; neither is alphabetical."""
    import tensorflow as tf

    class Twins(tf.Module):
        @tf.function(
            autograph=False,
            input_signature=[
                tf.TensorSpec([None, FEATURES], tf.float32, name="second"),
                tf.TensorSpec([None, FEATURES], tf.float32, name="first"),
            ],
        )
        def __call__(self, second: Any, first: Any) -> dict[str, Any]:
            return {"sum": tf.sin(second) + 2.0 * first, "difference": tf.sin(second) - 3.0 * first}

    return Twins()


def tensorflow_of(network: Any, folder: Path) -> Path:
    """Export a Keras model as a SavedModel."""
    network.export(str(folder), verbose=False)
    return folder


def save_tensorflow(module: Any, folder: Path, *, signature: bool = True) -> Path:
    import tensorflow as tf

    tf.saved_model.save(module, str(folder), signatures=module.__call__ if signature else {})
    return folder


def freeze(function: Any, path: Path) -> Path:
    """Write a concrete function as a frozen graph, as TensorFlow 1 did."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    frozen = convert_variables_to_constants_v2(function)
    tf.io.write_graph(frozen.graph, str(path.parent), path.name, as_text=False)
    return path


def freeze_session(path: Path) -> Path:
    """Write a frozen graph as TensorFlow 1 itself did: a session's variables become constants."""
    import tensorflow as tf

    one = tf.compat.v1
    generator = np.random.default_rng(14)
    graph = tf.Graph()
    with graph.as_default(), one.Session(graph=graph) as session:
        image = one.placeholder(tf.float32, [None, HEIGHT, WIDTH, CHANNELS], name="image")
        kernel = one.get_variable("kernel", initializer=generator.normal(size=(3, 3, CHANNELS, 5)).astype(np.float32))
        weight = one.get_variable("weight", initializer=generator.normal(size=(5, CLASSES)).astype(np.float32))
        means = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(image, kernel, 2, "SAME")), (1, 2))
        tf.nn.softmax(tf.matmul(means, weight), name="probabilities")
        session.run(one.global_variables_initializer())
        frozen = one.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["probabilities"])
    path.write_bytes(frozen.SerializeToString())
    return path


# --- TFLite ---


def tflite_of(network: Any, path: Path, kind: str = "float", *, batch: int | None = None) -> Path:
    """Convert a Keras model.

    Args:
        network: The model.
        path: Of the file.
        kind: "float", "dynamic-range", "float16", "int8" (float inputs), "full-int8" or "full-uint8".
        batch: A fixed batch, or None for a symbolic one.
    """
    import tensorflow as tf

    if batch is not None:
        network = fixed_batch(network, batch)
    converter = tf.lite.TFLiteConverter.from_keras_model(network)
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind in {"int8", "full-int8", "full-uint8"}:
        photos = [[images(batch or 1, channels_last=True, seed=seed)] for seed in range(8)]
        converter.representative_dataset = lambda: iter(photos)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if kind.startswith("full-"):
        stored = tf.int8 if kind == "full-int8" else tf.uint8
        converter.inference_input_type = converter.inference_output_type = stored
    path.write_bytes(converter.convert())
    return path


def _wrong_feeds() -> list[tuple[dict[str, Array], str]]:
    scene, context = images(3, channels_last=True), vectors(3)
    return [
        ({"scene": scene}, "context: float32"),
        ({"scene": scene, "kontext": context}, "context: float32"),
        ({"scene": images(3), "context": context}, "input scene"),
        ({"scene": scene, "context": vectors(3, size=5)}, "input context"),
        ({"scene": scene.astype("U"), "context": context}, "input scene"),
        ({"scene": scene, "context": context.astype("U")}, "input context"),
    ]


WRONG_FEEDS = _wrong_feeds()
"""Feeds that don't fit the pair of inputs of a network with channels last, and what the error must name."""
