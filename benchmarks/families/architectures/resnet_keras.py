"""A ResNet in Keras; takes pictures of 0 to 255 and rescales them itself."""

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
from benchmarks.families.pictures import pictures
from benchmarks.families.tflite_file import weight_scaled
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_SIZE, _WIDTH, _CLASSES = 32, 16, 10


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"image": pictures(generator, count, _SIZE, channels_last=True, high=255.0)}


def _build() -> Any:
    import keras
    from keras import layers

    def block(x: Any, width: int, stride: int, name: str) -> Any:
        found = layers.Conv2D(width, 3, stride, "same", use_bias=False, name=f"{name}_conv1")(x)
        found = layers.ReLU(name=f"{name}_relu1")(layers.BatchNormalization(name=f"{name}_bn1")(found))
        found = layers.Conv2D(width, 3, 1, "same", use_bias=False, name=f"{name}_conv2")(found)
        found = layers.BatchNormalization(name=f"{name}_bn2")(found)
        if stride > 1:
            x = layers.BatchNormalization(name=f"{name}_bn0")(
                layers.Conv2D(width, 1, stride, name=f"{name}_conv0")(x)
            )
        return layers.ReLU(name=f"{name}_relu2")(layers.Add(name=f"{name}_add")([x, found]))

    image = keras.Input((_SIZE, _SIZE, 3), name="image")
    x = layers.Rescaling(1 / 127.5, -1, name="rescaling")(image)
    x = layers.Conv2D(_WIDTH, 5, 2, "same", use_bias=False, name="stem_conv")(x)
    x = layers.ReLU(name="stem_relu")(layers.BatchNormalization(name="stem_bn")(x))
    x = layers.MaxPooling2D(3, 2, "same", name="stem_pool")(x)
    x = block(block(x, _WIDTH, 1, "block1"), 2 * _WIDTH, 2, "block2")
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    network = keras.Model(image, layers.Dense(_CLASSES, name="head")(x))
    return drawn_keras(network, 202, _samples(np.random.default_rng(1), 64)["image"])


ARCHITECTURE = Architecture(
    "resnet-keras",
    "keras",
    _build,
    _samples,
    {
        "bgr": input_as(lambda image: image[..., ::-1]),
        "rescaled-to-one": configured(Kind.PREPROCESSING, ("rescaling",), scale=1 / 255, offset=0.0),
        "epsilon": configured(Kind.HYPERPARAMETERS, ("BatchNormalization",), epsilon=0.05),
        "pads-valid": configured(Kind.HYPERPARAMETERS, ("stem_pool",), padding="valid"),
        "max-pool-as-mean": layer_as(
            Kind.GRAPH, "stem_pool", lambda layer: keras_layers().AveragePooling2D(3, 2, "same", name=layer.name)
        ),
        "kernel-transposed": numbers(Kind.PARAMETERS, "block1_conv2", "kernel", lambda array: array.swapaxes(0, 1)),
        "channels-permuted": numbers(Kind.PARAMETERS, "block2_conv1", "kernel", lambda array: np.roll(array, 1, -1)),
        "weight-scaled": numbers(Kind.PARAMETERS, "block1_conv1", "kernel", lambda array: 1.3 * array),
        "mean-lost": numbers(Kind.PARAMETERS, "block2_bn1", "moving_mean", lambda array: 0 * array),
        "activation-lost": layer_as(
            Kind.GRAPH, "block2_relu1", lambda layer: keras_layers().Activation("linear", name=layer.name)
        ),
        "bound-of-six": layer_as(
            Kind.HYPERPARAMETERS, "block1_relu2", lambda layer: keras_layers().ReLU(1.0, name=layer.name)
        ),
        "bias-lost": numbers(Kind.PARAMETERS, "head", "bias", lambda array: 0 * array),
        "calibrated-on-0-to-1": calibrated(lambda array: array / 255),
        "scale-of-weights": Fault(Kind.PARAMETERS, weight_scaled(2, 1.2), "file", ("keras-int8",)),
    },
    {
        "mean-as-average-pool": written(
            lambda layer: (
                keras_layers().GlobalAveragePooling2D(keepdims=False, name="mean") if layer.name == "pool" else None
            )
        ),
    },
    open_batch=True,
)
