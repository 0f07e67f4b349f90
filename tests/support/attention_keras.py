"""A transformer's block in Keras whose queries and keys can be exchanged, in TensorFlow's formats."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from attention_modules import HEADS, SIZE, STEPS, WIDTH, WORDS


def keras_file(path: Path, how: str, *, swapped: bool = False) -> Path:
    """Write the block.

    Args:
        path: Without the suffix.
        how: "keras", "saved_model" or "tflite".
        swapped: Whether it's at fault.
    """
    import keras
    import tensorflow as tf

    model = _block(keras, swapped=swapped)
    if how == "saved_model":
        model.export(path, verbose=False)
        return path
    file = path.with_suffix(f".{how}")
    if how == "keras":
        model.save(file)
    else:
        file.write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
    return file


def _block(keras: Any, *, swapped: bool) -> Any:
    ops, layers = keras.ops, keras.layers
    ids = keras.Input((STEPS,), dtype="int32", name="ids")
    x = layers.Embedding(WORDS, WIDTH, name="words")(ids)
    heads = [
        ops.transpose(layers.Reshape((STEPS, HEADS, SIZE))(layers.Dense(WIDTH, name=name)(x)), (0, 2, 1, 3))
        for name in ("query", "key", "value")
    ]
    query, key, value = heads
    if swapped:
        query, key = key, query
    scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2))) * SIZE**-0.5
    mixed = ops.transpose(ops.matmul(ops.softmax(scores), value), (0, 2, 1, 3))
    y = layers.Dense(WIDTH, name="out")(layers.Reshape((STEPS, WIDTH))(mixed))
    result = layers.Dense(5, name="head")(layers.GlobalAveragePooling1D()(layers.Add()([x, y])))
    model = keras.Model(ids, result)
    for weight in model.weights:
        drawn = np.random.default_rng(zlib.crc32(weight.path.encode())).normal(size=weight.shape)
        scale = 1.0 if "words" in weight.path else 0.3 if len(weight.shape) == 2 else 0.1
        weight.assign(scale * drawn)
    return model
