"""Every small network of the tests and examples as a file, by format and name; made when it's asked for."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import small_models as small
from made_once import made_once
from small_models import model_of

from conrepair.formats.models.model import Model

__all__ = ["FILES"]

Make = Callable[[Path], Model]
_NATIVE = "tests.support.native_models"


def _support(module: str) -> Any:
    return importlib.import_module(module)


# --- ONNX ---


def _onnx(write: Callable[[Path], Any]) -> Make:
    def make(folder: Path) -> Model:
        path = folder / "network.onnx"
        write(path)
        return model_of("onnx", path)

    return make


_ONNX: dict[str, Make] = {
    name: _onnx(getattr(small, f"onnx_{name}")) for name in ("convnet", "pair", "twins", "text")
} | {
    f"onnx_networks/{name}": _onnx(lambda path, name=name: getattr(_support("onnx_networks"), name)(path))
    for name in ("residual", "encoder", "recurrent", "branching", "split", "quantized", "with_function")
} | {
    f"rewritten_networks/{name}": _onnx(lambda path, name=name: getattr(_support("rewritten_networks"), name)(path))
    for name in ("residual_blocks", "encoder_blocks", "branches")
} | {
    "attention_networks/decoder": _onnx(lambda path: _support("attention_networks").decoder(path)),
    "onnx_networks/gru": _onnx(lambda path: _support("onnx_networks").recurrent(path, "GRU")),
    "half": _onnx(lambda path: small.onnx_convnet(path, half=True)),
    "quantized_networks": lambda folder: _support("quantized_networks").source(folder),
}  # fmt: skip


# --- Keras ---


def _keras(build: Callable[[], Any]) -> Make:
    def make(folder: Path) -> Model:
        path = folder / "network.keras"
        build().save(path)
        return model_of("keras", path)

    return make


def _shared() -> Any:
    """One activation, and one dense layer with another, that are called twice."""
    import keras

    keras.utils.set_random_seed(40)
    vector = keras.Input((4,), name="vector")
    dense = keras.layers.Dense(4, activation="tanh", name="dense")
    act = keras.layers.ReLU(name="act")
    first = act(dense(vector))
    second = act(dense(keras.layers.Rescaling(-1.5, name="turned")(first)))
    return keras.Model(vector, keras.layers.Subtract(name="difference")([first, second]))


def _causal() -> Any:
    """Convolutions of signals: one that sees the past alone, strided and grouped ones."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(41)
    rows = keras.Input((12, 4), name="rows")
    past = layers.Conv1D(4, 3, padding="causal", dilation_rate=2, activation="relu", name="past")(rows)
    deep = layers.DepthwiseConv1D(3, padding="same", name="deep")(past)
    groups = layers.Conv1D(6, 3, strides=2, groups=2, padding="same", name="groups")(deep)
    pooled = layers.MaxPooling1D(2, name="pooled")(groups)
    return keras.Model(rows, layers.AveragePooling1D(3, padding="same", strides=1, name="average")(pooled))


def _separable() -> Any:
    """Layers that are several operators, with an activation and without."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(44)
    picture = keras.Input((8, 8, 3), name="picture")
    first = layers.SeparableConv2D(4, 3, padding="same", activation="relu", name="first")(picture)
    second = layers.SeparableConv2D(4, 3, depth_multiplier=2, name="second")(first)
    scaled = layers.Rescaling(2.0, 1.0, name="scaled")(second)
    return keras.Model(picture, layers.Cropping2D(1, name="cropped")(scaled))


def _masked() -> Any:
    """Masks that go through layers which hand them on, into some that read them; and none where none is read."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(42)
    tokens = keras.Input((5,), dtype="int32", name="tokens")
    rows = layers.Embedding(11, 6, mask_zero=True, name="table")(tokens)
    states = layers.Dropout(0.5, name="dropped")(layers.LSTM(5, return_sequences=True, name="lstm")(rows))
    mixed = layers.MultiHeadAttention(2, 3, name="attention")(states, states)
    both = layers.Bidirectional(layers.GRU(4, return_sequences=True), name="both")(
        layers.Masking(name="masked")(mixed)
    )
    return keras.Model(tokens, [layers.GlobalAveragePooling1D(name="mean")(both), layers.Dense(2, name="last")(rows)])


def _functions() -> Any:
    """Functions of keras.ops, with constants, slices and several results."""
    import keras
    import numpy as np
    from keras import layers, ops

    keras.utils.set_random_seed(43)
    rows = keras.Input((5, 4), name="rows")
    bent = ops.sin(rows) * 2.0 + ops.mean(rows, axis=1, keepdims=True)
    product = ops.matmul(ops.transpose(bent, (0, 2, 1)), np.linspace(-1, 1, 10).reshape(5, 2).astype(np.float32))
    first, second = ops.split(product, 2, axis=1)
    total = layers.Add(name="total")([first, second, ops.clip(first, 0.0, 0.4)])
    return keras.Model(rows, [ops.stack([total, 1.0 / (second + 1.0)], axis=1), total[:, 0, None, ::2]])


_KERAS: dict[str, Make] = {
    **{
        f"small_models/{name}": _keras(getattr(small, f"keras_{name}"))
        for name in ("convnet", "pair", "twins", "text")
    },
    "small_models/nested": _keras(lambda: small.keras_convnet(nested=True)),
    **{
        f"native_models/{name}": _keras(lambda name=name: _support(_NATIVE).KERAS[name]())
        for name in ("image", "order", "text", "pair")
    },
    **{
        f"tflite_networks/{name}": _keras(lambda name=name: _support("tflite_networks").NETWORKS[name]())
        for name in ("residual", "attention", "perceptron", "lstm", "gru")
    },
    "shared": _keras(_shared),
    "masked": _keras(_masked),
    "functions": _keras(_functions),
    "separable": _keras(_separable),
    "causal": _keras(_causal),
    "rescaled": _keras(lambda: _support("rescaled").trained()),
    **{
        f"attention_keras/{how}": (
            lambda folder, how=how: model_of("keras", _support("attention_keras").keras_file(folder / "a.keras", how))
        )
        for how in ("keras",)
    },
}


# --- PyTorch ---


def _torch(build: Callable[[], Any], feeds: Callable[[], tuple[Any, ...]]) -> Make:
    def make(folder: Path) -> Model:
        import torch

        path = folder / "network.pt2"
        small.export_pt2(build(), [torch.from_numpy(array) for array in feeds()], path)
        return model_of("torch", path)

    return make


def _of_examples(name: str) -> Make:
    import numpy as np

    shapes = {"lstm": [(2, 7, 12)], "gru": [(2, 7, 12)], "two_inputs": [(2, 3, 16, 16), (2, 8)]}
    if name == "encoder":
        return _torch(lambda: _example(name), lambda: (np.arange(32).reshape(2, 16),))
    generator = np.random.default_rng(0)
    return _torch(
        lambda: _example(name),
        lambda: tuple(generator.normal(size=shape).astype(np.float32) for shape in shapes[name]),
    )


def _example(name: str) -> Any:
    return getattr(importlib.import_module("examples.networks"), name)().eval()


def _pooled() -> Any:
    """Poolings to several places, and activations with numbers of their own."""
    import torch
    from torch import nn

    torch.manual_seed(42)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.Softplus(beta=2), nn.AdaptiveAvgPool2d((4, 4)), nn.Conv2d(4, 5, 1),
        nn.AdaptiveMaxPool2d((2, 2)), nn.Softplus(), nn.AdaptiveAvgPool2d((2, 1)), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(5, 3),
    ).eval()  # fmt: skip


_TORCH: dict[str, Make] = {
    **{
        f"torch_networks/{name}": (
            lambda folder, name=name: _support("torch_networks").prepared(name, folder, pt2=True)[0]
        )
        for name in (
            *("convnet", "pair", "text", "residual", "encoder", "seq2seq", "recurrent", "mlp", "functions"),
            *("arrangement", "writing", "branches", "selecting"),
        )
    },
    **{
        f"native_models/{name}": (lambda folder, name=name: _support(_NATIVE).torch_file(name, folder))
        for name in ("image", "order", "text", "pair")
    },
    "factory/image": lambda folder: _support(_NATIVE).torch_factory_model("image", folder),
    **{f"examples/{name}": _of_examples(name) for name in ("encoder", "lstm", "gru", "two_inputs")},
    "pooled": _torch(_pooled, lambda: (small.images(),)),
}


# --- TensorFlow ---

_TENSORFLOW: dict[str, Make] = {
    **{
        f"native_models/{name}": (lambda folder, name=name: _support(_NATIVE).tensorflow_file(name, folder))
        for name in ("image", "order", "text", "pair")
    },
    "small_models/pair": lambda folder: model_of(
        "tensorflow", small.save_tensorflow(small.tensorflow_pair(), folder / "pair")
    ),
    "small_models/twins": lambda folder: model_of(
        "tensorflow", small.save_tensorflow(small.tensorflow_twins(), folder / "twins")
    ),
    "frozen": lambda folder: model_of("tensorflow", small.freeze_session(folder / "frozen.pb")),
}


# --- TFLite ---


def _tflite(name: str, kind: str) -> Make:
    def make(folder: Path) -> Model:
        support = _support("tflite_networks")
        network = support.NETWORKS[name]()
        if name in {"lstm", "gru"}:
            network = support.fixed(network, 1)
        return support.written(network, folder / "network.tflite", kind)

    return make


_TFLITE_NETWORKS = ("convnet", "residual", "attention", "perceptron", "lstm", "gru", "pair", "twins", "text")
_TFLITE: dict[str, Make] = {
    **{f"tflite_networks/{name}": _tflite(name, "float") for name in _TFLITE_NETWORKS},
    **{f"tflite_networks/{name}/full-int8": _tflite(name, "full-int8") for name in ("residual", "perceptron")},
    **{f"tflite_networks/{name}/float16": _tflite(name, "float16") for name in ("residual", "lstm")},
    **{
        f"native_models/{name}": (lambda folder, name=name: _support(_NATIVE).tflite_file(name, folder))
        for name in ("image", "order", "text", "pair")
    },
    "native_models/shared": lambda folder: _support(_NATIVE).tflite_shared(folder),
}

_MAKERS: Mapping[str, Mapping[str, Make]] = {
    "onnx": _ONNX,
    "keras": _KERAS,
    "torch": _TORCH,
    "tensorflow": _TENSORFLOW,
    "tflite": _TFLITE,
}


@made_once
def _made(folder: Path, format_: str, name: str) -> Model:
    return _MAKERS[format_][name](folder)


FILES: Mapping[str, Mapping[str, Make]] = {
    format_: {name: functools.partial(_made, format_=format_, name=name) for name in makers}
    for format_, makers in _MAKERS.items()
}
