"""EfficientNet in Keras: Rescaling, Normalization, strided depthwise convolutions, swish, squeeze and excitation."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.families.architecture import Architecture, Fault
from benchmarks.families.keras_faults import (
    calibrated,
    configured,
    drawn_keras,
    input_as,
    keras_layers,
    layer_as,
    numbers,
    written,
)
from benchmarks.families.pictures import MEAN, STD, pictures
from benchmarks.families.tflite_file import weight_scaled
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_SIZE, _CLASSES = 32, 10


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"image": np.round(pictures(generator, count, _SIZE, channels_last=True, high=255.0))}


def _build() -> Any:
    import keras
    from keras import layers

    def block(x: Any, outside: int, kernel: int, stride: int, name: str) -> Any:
        inside = x.shape[-1]
        found = layers.Conv2D(3 * inside, 1, use_bias=False, name=f"{name}_expand")(x)
        found = layers.BatchNormalization(name=f"{name}_bn1")(found)
        found = layers.Activation("swish", name=f"{name}_act1")(found)
        if stride > 1:
            found = layers.ZeroPadding2D(((0, 1), (0, 1)), name=f"{name}_pad")(found)
        pads = "valid" if stride > 1 else "same"
        found = layers.DepthwiseConv2D(kernel, stride, pads, use_bias=False, name=f"{name}_dw")(found)
        found = layers.BatchNormalization(name=f"{name}_bn2")(found)
        found = layers.Activation("swish", name=f"{name}_act2")(found)
        gate = layers.GlobalAveragePooling2D(keepdims=True, name=f"{name}_squeeze")(found)
        gate = layers.Conv2D(4, 1, activation="swish", name=f"{name}_reduce")(gate)
        gate = layers.Conv2D(3 * inside, 1, activation="sigmoid", name=f"{name}_excite")(gate)
        found = layers.Multiply(name=f"{name}_gated")([found, gate])
        found = layers.BatchNormalization(name=f"{name}_bn3")(
            layers.Conv2D(outside, 1, use_bias=False, name=f"{name}_project")(found)
        )
        return layers.Add(name=f"{name}_add")([x, found]) if stride == 1 and inside == outside else found

    image = keras.Input((_SIZE, _SIZE, 3), name="image")
    x = layers.Rescaling(1 / 255, name="rescaling")(image)
    x = layers.Normalization(mean=MEAN, variance=[value**2 for value in STD], name="normalization")(x)
    x = layers.Conv2D(12, 3, 2, "same", use_bias=False, name="stem")(x)
    x = layers.Activation("swish", name="stem_act")(layers.BatchNormalization(name="stem_bn")(x))
    x = block(block(x, 16, 3, 2, "block1"), 16, 5, 1, "block2")
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    network = keras.Model(image, layers.Dense(_CLASSES, activation="softmax", name="head")(x))
    return drawn_keras(network, 307, _samples(np.random.default_rng(1), 64)["image"])


ARCHITECTURE = Architecture(
    "efficientnet-keras",
    "keras",
    _build,
    _samples,
    {
        "bgr": input_as(lambda image: image[..., ::-1]),
        "rescaled-to-both-signs": configured(Kind.PREPROCESSING, ("rescaling",), scale=1 / 127.5, offset=-1.0),
        "normalization-lost": layer_as(
            Kind.PREPROCESSING, "normalization", lambda layer: keras_layers().Activation("linear", name=layer.name)
        ),
        "pads-in-front": configured(Kind.HYPERPARAMETERS, ("block1_pad",), padding=((1, 0), (1, 0))),
        "hard-swish": configured(Kind.GRAPH, ("block2_act2",), activation="hard_swish"),
        "gate-of-tanh": configured(Kind.GRAPH, ("block1_excite",), activation="tanh"),
        "epsilon": configured(Kind.HYPERPARAMETERS, ("BatchNormalization",), epsilon=0.1),
        "kernels-transposed": numbers(Kind.PARAMETERS, "block2_dw", "kernel", lambda array: array.swapaxes(0, 1)),
        "channels-permuted": numbers(Kind.PARAMETERS, "block1_project", "kernel", lambda array: np.roll(array, 1, 2)),
        "weight-scaled": numbers(Kind.PARAMETERS, "block2_expand", "kernel", lambda array: 1.3 * array),
        "mean-lost": numbers(Kind.PARAMETERS, "block1_bn2", "moving_mean", lambda array: 0 * array),
        "bias-lost": numbers(Kind.PARAMETERS, "head", "bias", lambda array: 0 * array),
        "max-for-mean": layer_as(
            Kind.GRAPH, "pool", lambda layer: keras_layers().GlobalMaxPooling2D(name=layer.name)
        ),
        "calibrated-on-0-to-1": calibrated(lambda array: array / 255),
        "scale-of-weights": Fault(Kind.PARAMETERS, weight_scaled(3, 1.3), "file", ("keras-int8",)),
    },
    {
        "swish-as-a-layer": written(
            lambda layer: keras_layers().Activation("silu", name="silu") if layer.name == "stem_act" else None
        ),
        "pool-kept": written(
            lambda layer: keras_layers().GlobalAveragePooling2D(name="mean") if layer.name == "pool" else None
        ),
    },
    open_batch=True,
)
