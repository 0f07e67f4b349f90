"""Small networks that between them have a place for every fault of PyTorch, Keras and TFLite files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from conrepair.formats.models.model import Factory, Model
from conrepair.ground.data.tensor_spec import TensorSpec
from tests.support.made_once import made_once
from tests.support.small_models import Array, export_pt2, fixed_batch, model_of

SIDE, CLASSES, TOKENS, WORDS, WIDTH = 12, 6, 5, 11, 8
PICTURES = ("batch", 3, SIDE, SIDE)


# --- PyTorch ---


def torch_image() -> Any:
    """Convolutions (one dilated), normalizations, a residual connection, pools, branches, dense layers, a softmax."""
    import torch
    from torch import nn

    class Image(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(
                nn.Conv2d(3, WIDTH, 3, padding=1), nn.BatchNorm2d(WIDTH), nn.ReLU6(inplace=True)
            )
            self.pool = nn.MaxPool2d(3, 1, 1)
            self.average = nn.AvgPool2d(3, 1, 1)
            self.dilated = nn.Conv2d(WIDTH, WIDTH, 3, padding=2, dilation=2)
            self.depthwise = nn.Conv2d(2 * WIDTH, 2 * WIDTH, 3, padding=1, groups=2 * WIDTH, bias=False)
            self.group = nn.GroupNorm(2, 2 * WIDTH)
            self.leaky = nn.LeakyReLU(0.1)
            self.global_pool = nn.AdaptiveAvgPool2d(1)
            self.square = nn.Linear(2 * WIDTH, 2 * WIDTH)
            self.elu = nn.ELU()
            self.last = nn.Linear(2 * WIDTH, CLASSES)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            first = self.pool(self.stem(4 * image))
            second = torch.relu(self.dilated(first)) + first
            both = torch.cat([second, self.average(first)], 1)
            mixed = self.leaky(self.group(self.depthwise(both)))
            vector = self.elu(self.square(8 * self.global_pool(mixed).flatten(1)))
            return torch.softmax(self.last(vector), -1)

    torch.manual_seed(20)
    return _away_from_defaults(Image())


def torch_order() -> Any:
    """Padding of another kind, a transposed square, a flattened picture, an upsampling; no softmax."""
    import torch
    from torch import nn

    class Order(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.act = nn.Hardswish()
            self.up = nn.UpsamplingBilinear2d(scale_factor=1.5)
            self.narrow = nn.Conv2d(4, 2, 3, stride=3)
            self.dense = nn.Linear(72, CLASSES)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            padded = nn.functional.pad(image, (1, 1, 1, 1), mode="reflect")
            picture = self.up(self.act(self.conv(padded)).transpose(2, 3).permute(0, 1, 3, 2))
            return self.dense(self.narrow(picture).flatten(1)) - 1.0

    torch.manual_seed(21)
    return _away_from_defaults(Order())


def torch_text() -> Any:
    """Embedding, LSTM, GRU, LayerNorm, GELU."""
    import torch
    from torch import nn

    class Text(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(WORDS, WIDTH)
            self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
            self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)
            self.norm = nn.LayerNorm(WIDTH)
            self.gelu = nn.GELU()
            self.last = nn.Linear(WIDTH, CLASSES)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            states, _ = self.lstm(3 * self.table(tokens))
            states, _ = self.gru(states)
            return self.last(self.gelu(self.norm(states)))

    torch.manual_seed(22)
    return _away_from_defaults(Text())


def torch_pair() -> Any:
    """Two inputs and two outputs of one shape each."""
    import torch
    from torch import nn

    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Linear(WIDTH, WIDTH)

        def forward(self, one: torch.Tensor, two: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            a, b = self.dense(one), torch.tanh(two)
            return a - b, torch.sigmoid(a) * b

    torch.manual_seed(23)
    return Pair().eval()


TORCH = {"image": torch_image, "order": torch_order, "text": torch_text, "pair": torch_pair}


@made_once
def torch_file(name: str, folder: Path) -> Model:
    """An exported program."""
    import torch

    path = folder / f"{name}.pt2"
    export_pt2(TORCH[name](), [torch.from_numpy(array) for array in feeds_of(name).values()], path)
    return model_of("torch", path)


@made_once
def torch_factory_model(name: str, folder: Path) -> Model:
    """A state dict, and what builds the network."""
    import torch

    path = folder / f"{name}.pt"
    torch.save(TORCH[name]().state_dict(), path)
    specs = tuple(
        TensorSpec(key, ("batch", *array.shape[1:]), array.dtype.name) for key, array in feeds_of(name).items()
    )
    return model_of("torch", path, factory=Factory(f"{__name__}:torch_{name}"), inputs=specs)


def _away_from_defaults(network: Any) -> Any:
    """Biases, scales and statistics that aren't 0 and 1."""
    import torch

    generator = torch.Generator().manual_seed(24)
    with torch.no_grad():
        for name, tensor in [*network.named_parameters(), *network.named_buffers()]:
            if tensor.ndim == 1 and tensor.is_floating_point():
                low = 0.5 if name.endswith(("weight", "var")) else -0.5
                tensor.uniform_(low, low + 1, generator=generator)
    return network.eval()


def feeds_of(name: str, *, channels_last: bool = False) -> dict[str, Array]:
    """Inputs of a network, by the name that it has in all frameworks."""
    generator = np.random.default_rng(25)
    if name == "text":
        return {"tokens": generator.integers(0, WORDS, (2, TOKENS))}
    if name == "pair":
        return {key: generator.normal(size=(2, WIDTH)).astype(np.float32) for key in ("one", "two")}
    picture = generator.normal(size=(2, 3, SIDE, SIDE)).astype(np.float32)
    return {"image": np.ascontiguousarray(picture.transpose(0, 2, 3, 1)) if channels_last else picture}


# --- Keras, and TFLite from it ---


def keras_image() -> Any:
    """As `torch_image`, with channels last."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(30)
    image = keras.Input((SIDE, SIDE, 3), name="image")
    stem = layers.Conv2D(WIDTH, 3, padding="same", name="stem")(layers.Rescaling(4.0, name="scaled")(image))
    stem = layers.ReLU(6.0, name="relu6")(layers.BatchNormalization(name="norm")(stem))
    first = layers.MaxPooling2D(3, strides=1, padding="same", name="pool")(stem)
    dilated = layers.Conv2D(WIDTH, 3, padding="same", dilation_rate=2, activation="relu", name="dilated")(first)
    second = layers.Add(name="residual")([dilated, first])
    average = layers.AveragePooling2D(3, strides=1, padding="same", name="average")(first)
    both = layers.Concatenate(name="both")([second, average])
    mixed = layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="depthwise")(both)
    mixed = layers.GroupNormalization(2, name="group")(mixed)
    mixed = layers.LeakyReLU(0.1, name="leaky")(mixed)
    vector = layers.GlobalAveragePooling2D(name="global")(mixed)
    vector = layers.ELU(name="elu")(layers.Dense(2 * WIDTH, name="square")(vector))
    return _keras_away_from_defaults(
        keras.Model(image, layers.Dense(CLASSES, activation="softmax", name="last")(vector))
    )


def keras_order() -> Any:
    """As `torch_order`, in a nested model."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(31)
    image = keras.Input((SIDE, SIDE, 3), name="image")
    body = keras.Sequential(
        [
            layers.ZeroPadding2D(((1, 1), (1, 1)), name="pad"),
            layers.Conv2D(4, 3, name="conv"),
            layers.Activation("hard_silu", name="hard_silu"),
        ],
        name="body",
    )
    picture = layers.Permute((2, 1, 3), name="permute")(body(image))
    picture = layers.UpSampling2D(2, interpolation="bilinear", name="up")(picture)
    picture = keras.ops.pad(picture, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="reflect")
    picture = layers.Conv2D(2, 3, strides=4, name="narrow")(picture)
    flat = layers.Flatten(name="flat")(picture)
    return _keras_away_from_defaults(keras.Model(image, layers.Dense(CLASSES, name="dense")(flat)))


def keras_text() -> Any:
    """Embedding, LSTM, GRU, LayerNormalization, GELU."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(32)
    tokens = keras.Input((TOKENS,), dtype="int32", name="tokens")
    states = layers.Embedding(WORDS, WIDTH, name="table")(tokens)
    states = layers.LSTM(WIDTH, return_sequences=True, unroll=True, name="lstm")(layers.Rescaling(40.0)(states))
    states = layers.GRU(WIDTH, return_sequences=True, unroll=True, name="gru")(states)
    states = layers.LayerNormalization(name="norm")(states)
    states = layers.Activation("gelu", name="gelu")(states)
    return _keras_away_from_defaults(keras.Model(tokens, layers.Dense(CLASSES, name="last")(states)))


def keras_pair() -> Any:
    """Two inputs and two outputs of one shape each."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(33)
    one, two = keras.Input((WIDTH,), name="one"), keras.Input((WIDTH,), name="two")
    a, b = layers.Dense(WIDTH, name="dense")(one), layers.Activation("tanh", name="tanh")(two)
    difference = layers.Subtract(name="difference")([a, b])
    product = layers.Multiply(name="product")([layers.Activation("sigmoid", name="sigmoid")(a), b])
    return keras.Model([one, two], [difference, product])


KERAS = {"image": keras_image, "order": keras_order, "text": keras_text, "pair": keras_pair}


@made_once
def keras_file(name: str, folder: Path) -> Model:
    path = folder / f"{name}.keras"
    KERAS[name]().save(path)
    return model_of("keras", path)


@made_once
def tensorflow_file(name: str, folder: Path) -> Model:
    """A SavedModel that Keras exported."""
    path = folder / f"{name}.saved"
    KERAS[name]().export(str(path), format="tf_saved_model", verbose=False)
    return model_of("tensorflow", path)


@made_once
def tflite_file(name: str, folder: Path, kind: str = "float") -> Model:
    """A conversion: "float", "fixed" (of the batch of the feeds), "float16", or "full-int8"."""
    import tensorflow as tf

    network = KERAS[name]()
    converter = tf.lite.TFLiteConverter.from_keras_model(fixed_batch(network, 2) if kind == "fixed" else network)
    if kind not in {"float", "fixed"}:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind == "full-int8":
        examples = [[array[:1] for array in feeds_of(name, channels_last=True).values()]]
        converter.representative_dataset = lambda: iter(examples)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    path = folder / f"{name}.{kind}.tflite"
    path.write_bytes(converter.convert())
    return model_of("tflite", path)


def tflite_shared(folder: Path) -> Model:
    """Two layers that read one constant."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(35)
    vector = keras.Input((WIDTH,), name="vector")
    dense = keras.layers.Dense(WIDTH, use_bias=False)
    network = keras.Model(vector, [dense(vector), dense(keras.layers.Activation("tanh")(vector))])
    path = folder / "shared.tflite"
    path.write_bytes(tf.lite.TFLiteConverter.from_keras_model(network).convert())
    return model_of("tflite", path)


def _keras_away_from_defaults(network: Any) -> Any:
    generator = np.random.default_rng(34)
    for variable in network.weights:
        if len(variable.shape) == 1:
            low = 0.5 if variable.name in {"gamma", "moving_variance"} else -0.5
            variable.assign(generator.uniform(low, low + 1, variable.shape))
    return network
