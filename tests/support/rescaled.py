"""A small Keras classifier of pictures in bytes, that begins with Rescaling, trained; and it in eight bits."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

__all__ = ["as_int8", "pictures", "trained"]

_SIZE = 12


def pictures(count: int, seed: int = 0) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Noisy pictures of ten patterns, 0 to 255, and which one each is of."""
    rng = np.random.default_rng(seed)
    patterns = np.random.default_rng(7).uniform(0, 255, (10, 4, 4, 1)).repeat(3, 1).repeat(3, 2)
    labels = rng.integers(0, 10, count)
    light = rng.uniform(0.6, 1, (count, 1, 1, 1))
    noisy = patterns[labels] * light + rng.normal(0, 40, (count, _SIZE, _SIZE, 1))
    return np.clip(noisy, 0, 255).astype(np.float32), labels


@functools.cache
def trained() -> Any:
    """Convolutions with batch normalization, a depthwise one among them; right in more than nine of ten cases."""
    keras.utils.set_random_seed(3)
    layers = keras.layers
    network = keras.Sequential(
        [
            keras.Input((_SIZE, _SIZE, 1)),
            layers.Rescaling(1 / 127.5, offset=-1),
            layers.Conv2D(12, 3, padding="same", use_bias=False, name="first"),
            layers.BatchNormalization(),
            layers.ReLU(6.0),
            layers.DepthwiseConv2D(3, strides=2, padding="same", use_bias=False, name="depthwise"),
            layers.BatchNormalization(),
            layers.ReLU(6.0),
            layers.Conv2D(16, 3, padding="same", use_bias=False, name="last"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10, name="classes"),
        ]
    )
    network.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    network.fit(*pictures(800), epochs=5, batch_size=50, verbose=0)
    return network


def as_int8(path: Path, calibrated: npt.NDArray[np.float32], *, stored: bool = False, network: Any = None) -> Path:
    """TensorFlow's full integer quantization of it.

    Args:
        path: Of the file.
        calibrated: Pictures that activations' ranges are taken from.
        stored: Whether inputs and outputs are integers.
        network: Another network; default: the trained one.
    """
    converter = tf.lite.TFLiteConverter.from_keras_model(trained() if network is None else network)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([picture[None]] for picture in calibrated)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if stored:
        converter.inference_input_type = converter.inference_output_type = tf.int8
    path.write_bytes(converter.convert())
    return path
