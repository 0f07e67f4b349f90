"""A GRU in Keras, with and without what cuDNN's form changes: `reset_after`, two biases."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.families.architecture import Architecture, Array
from benchmarks.families.keras_faults import configured, drawn_keras, keras_layers, numbers, written
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_STEPS, _BINS, _HIDDEN, _CLASSES = 12, 10, 16, 6


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    noise = generator.standard_normal((count, _STEPS, _BINS))
    return {"series": (np.cumsum(noise, 1) / 2).astype(np.float32)}


def _build() -> Any:
    import keras
    from keras import layers

    series = keras.Input((_STEPS, _BINS), name="series")
    x = layers.Conv1D(_HIDDEN, 3, padding="causal", activation="relu", name="conv")(series)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.GRU(_HIDDEN, return_sequences=True, name="gru1")(x)
    x = layers.GRU(_HIDDEN, name="gru2")(x)
    x = layers.Dense(20, activation="tanh", name="dense")(x)
    network = keras.Model(series, layers.Dense(_CLASSES, name="head")(x))
    return drawn_keras(network, 310, _samples(np.random.default_rng(1), 64)["series"])


def _gates(*order: int) -> Any:
    def compute(array: Array) -> Array:
        parts = np.split(array, 3, -1)
        return np.concatenate([parts[place] for place in order], -1)

    return compute


ARCHITECTURE = Architecture(
    "gru-keras",
    "keras",
    _build,
    _samples,
    {
        "gates-exchanged": numbers(Kind.PARAMETERS, "gru1", "kernel", _gates(1, 0, 2)),
        "recurrent-gates-exchanged": numbers(Kind.PARAMETERS, "gru2", "recurrent_kernel", _gates(1, 0, 2)),
        "recurrent-scaled": numbers(Kind.PARAMETERS, "gru2", "recurrent_kernel", lambda array: 1.2 * array),
        "biases-exchanged": numbers(Kind.PARAMETERS, "gru1", "bias", lambda array: array[::-1]),
        "bias-lost": numbers(Kind.PARAMETERS, "gru2", "bias", lambda array: 0 * array),
        "activation-lost": configured(Kind.GRAPH, ("gru2",), activation="linear"),
        "hard-sigmoid": configured(Kind.GRAPH, ("gru1",), recurrent_activation="hard_sigmoid"),
        "backwards": configured(Kind.HYPERPARAMETERS, ("gru2",), go_backwards=True),
        "same-for-causal": configured(Kind.HYPERPARAMETERS, ("conv",), padding="same"),
        "relu-lost": configured(Kind.GRAPH, ("conv",), activation="linear"),
        "epsilon": configured(Kind.HYPERPARAMETERS, ("norm",), epsilon=0.1),
        "dense-activation": configured(Kind.GRAPH, ("dense",), activation="relu"),
        "labels-off-by-one": numbers(Kind.PARAMETERS, "head", "kernel", lambda array: np.roll(array, 1, 1)),
        "kernel-turned": numbers(Kind.PARAMETERS, "conv", "kernel", lambda array: array[::-1]),
    },
    {
        "unrolled": written(
            lambda layer: (
                keras_layers().GRU.from_config(layer.get_config() | {"unroll": True}) if "gru" in layer.name else None
            )
        ),
        "activation-apart": written(
            lambda layer: (
                keras_layers().Dense(_CLASSES, activation="linear", name="head") if layer.name == "head" else None
            )
        ),
    },
    routes=("keras-tflite", "keras-onnx"),
)
