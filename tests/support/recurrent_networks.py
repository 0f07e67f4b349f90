"""Keras networks with one recurrent layer, right and wrong, and their TFLite files, which have a loop for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["Weights", "by_gate", "keras_network", "scaled", "subjects", "tflite_file"]

Weights = list[np.ndarray]


def keras_network(
    kind: str,
    change: Callable[[Weights], Weights] | None = None,
    *,
    steps: int = 4,
    width: int = 5,
    hidden: int = 6,
    both: bool = False,
    sequences: bool = False,
    stacked: bool = False,
    **options: Any,
) -> Any:
    """A dense layer, a recurrent one, a dense one.

    Args:
        kind: Of the recurrent layer, as Keras calls it.
        change: What is done to its weights.
        steps: Of its input.
        width: Of its input.
        hidden: Its units.
        both: Whether it goes in both directions.
        sequences: Whether it gives all steps.
        stacked: Whether a second one reads all steps of it.
        options: Others of it.
    """
    import keras

    x = keras.Input((steps, width), batch_size=1, name="x")
    layer = getattr(keras.layers, kind)(
        hidden, name="layer", bias_initializer="random_normal", return_sequences=sequences or stacked, **options
    )
    layer = keras.layers.Bidirectional(layer, name="both") if both else layer
    states = layer(keras.layers.Dense(width, name="first")(x))
    states = getattr(keras.layers, kind)(hidden, name="second")(states) if stacked else states
    states = keras.layers.GlobalAveragePooling1D(name="pool")(states) if sequences else states
    model = keras.Model(x, keras.layers.Dense(3, name="head")(states))
    for place, weight in enumerate(model.weights):
        spread = 0.8 * min(1.0, (6 / weight.shape[0]) ** 0.5)
        weight.assign(np.random.default_rng(place).normal(size=weight.shape) * spread)
    if change is not None:
        layer.set_weights(change(layer.get_weights()))
    return model


def tflite_file(model: Any, path: Path, *, eight_bits: bool = False) -> Path:
    """Convert it; with weights in eight bits, activations as they run, if that's wanted."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if eight_bits:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    path.write_bytes(converter.convert())
    return path


def by_gate(*order: int) -> Callable[[Weights], Weights]:
    """Kernels and biases with their gates in another order, by Keras's places."""
    return lambda held: [
        np.concatenate([np.split(array, len(order), -1)[place] for place in order], -1) for array in held
    ]


def scaled(place: int, factor: float) -> Callable[[Weights], Weights]:
    """One of the layer's weights times a number."""
    return lambda held: [np.float32(factor) * array if at == place else array for at, array in enumerate(held)]


def subjects(source: Path, target: Path, folder: Path, count: int = 8) -> tuple[FedModel, FedModel]:
    """Two files of the network, with the same inputs."""
    sides = [Model(path.suffix[1:], str(path), sha256_of(path)) for path in (source, target)]
    described = [framework(model.framework).describe(model).inputs for model in sides]
    shape = tuple(size or 1 for size in described[0][0].shape[1:])
    np.savez(folder / "data.npz", x=np.random.default_rng(0).normal(size=(count, *shape)).astype(np.float32))
    data = DataReference("tensors", count, str(folder / "data.npz"), sha256_of(folder / "data.npz"))
    one, two = (FedModel(model, inputs, data, None) for model, inputs in zip(sides, described, strict=True))
    return one, two
