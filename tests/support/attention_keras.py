"""A transformer's block in Keras whose attention can be at fault, in TensorFlow's formats."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from attention_modules import HEADS, SIZE, STEPS, WIDTH, WORDS


def keras_file(path: Path, how: str, *, swapped: bool = False, rotated: str = "") -> Path:
    """Write the block.

    Args:
        path: Without the suffix.
        how: "keras", "saved_model" or "tflite".
        swapped: Whether queries and keys are exchanged.
        rotated: Whether, and how, they have rotary positions: "halves" or "neighbours".
    """
    import keras
    import tensorflow as tf

    keras.backend.clear_session()  # names as in a process of its own, whatever tests ran before
    model = _block(keras, swapped=swapped, rotated=rotated)
    if how == "saved_model":
        model.export(path, verbose=False)
        return path
    file = path.with_suffix(f".{how}")
    if how == "keras":
        model.save(file)
    else:
        file.write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
    return file


def _turned(keras: Any, x: Any, rotated: str) -> Any:
    """Rotary embeddings, of halves or of neighbours."""
    ops = keras.ops
    angles = np.outer(np.arange(STEPS), 0.1 ** (np.arange(SIZE // 2) / (SIZE // 2))).astype(np.float32)
    half = SIZE // 2
    one, two = (x[..., :half], x[..., half:]) if rotated == "halves" else (x[..., 0::2], x[..., 1::2])
    first = one * np.cos(angles) - two * np.sin(angles)
    second = two * np.cos(angles) + one * np.sin(angles)
    if rotated == "halves":
        return ops.concatenate([first, second], -1)
    return ops.reshape(ops.stack([first, second], -1), (-1, HEADS, STEPS, SIZE))


def _block(keras: Any, *, swapped: bool, rotated: str) -> Any:
    ops, layers = keras.ops, keras.layers
    ids = keras.Input((STEPS,), dtype="int32", name="ids")
    x = layers.Embedding(WORDS, WIDTH, name="words")(ids)
    heads = [
        ops.transpose(layers.Reshape((STEPS, HEADS, SIZE))(layers.Dense(WIDTH, name=name)(x)), (0, 2, 1, 3))
        for name in ("query", "key", "value")
    ]
    query, key, value = heads
    if rotated:
        query, key = _turned(keras, query, rotated), _turned(keras, key, rotated)
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
