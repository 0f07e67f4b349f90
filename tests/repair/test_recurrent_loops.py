"""Recurrent layers that TFLite has as a loop: what became of them is told from their results, and mended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conrepair.data.feeds import DataReference
from conrepair.evaluate.verdict import Verdict
from conrepair.faults.fault import Kind
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.localize.models import Subject
from conrepair.localize.options import Options
from conrepair.repair.options import RepairOptions
from conrepair.repair.repair import repair_models
from conrepair.runtime.files import sha256_of

STEPS, WIDTH, HIDDEN = 4, 5, 6
OPTIONS = RepairOptions(Options(samples=4, batch_size=1), seconds=120, unseen=4)

Weights = list[np.ndarray]


def by_gate(*order: int) -> Callable[[Weights], Weights]:
    """Kernels and biases with their gates in another order, by Keras's places."""
    return lambda held: [
        np.concatenate([np.split(array, len(order), -1)[place] for place in order], -1) for array in held
    ]


FAULTS: dict[str, tuple[str, dict[str, Any], Callable[[Weights], Weights] | None, Kind, str]] = {
    "gates of an LSTM": (
        "LSTM", {}, by_gate(1, 0, 2, 3), Kind.PARAMETERS, "the input gate and the forget gate are exchanged",
    ),
    "gates of a GRU": (
        "GRU", {}, by_gate(1, 0, 2), Kind.PARAMETERS, "the update gate and the reset gate are exchanged",
    ),
    "recurrent weights": (
        "GRU", {}, lambda held: [held[0], np.float32(1.1) * held[1], *held[2:]], Kind.PARAMETERS,
        "the recurrent weights are scaled by 1.1",
    ),
    "an activation": (
        "LSTM", {"activation": "linear"}, None, Kind.HYPERPARAMETERS,
        "the activation of cell and output (Tanh) is lost",
    ),
    "another activation": (
        "GRU", {"recurrent_activation": "hard_sigmoid"}, None, Kind.HYPERPARAMETERS,
        "the activation of gates is HardSigmoid in place of Sigmoid",
    ),
}  # fmt: skip


def model_of(kind: str, change: Callable[[Weights], Weights] | None = None, **options: Any) -> Any:
    import keras

    x = keras.Input((STEPS, WIDTH), batch_size=1, name="x")
    layer = getattr(keras.layers, kind)(HIDDEN, name="layer", bias_initializer="random_normal", **options)
    model = keras.Model(x, keras.layers.Dense(3, name="head")(layer(keras.layers.Dense(WIDTH, name="first")(x))))
    for place, weight in enumerate(model.weights):
        weight.assign(np.random.default_rng(place).normal(size=weight.shape) * 0.8)
    if change is not None:
        layer.set_weights(change(layer.get_weights()))
    return model


@pytest.mark.parametrize("name", FAULTS)
def test_what_became_of_a_loop(name: str, tmp_path: Path) -> None:
    import tensorflow as tf

    kind, options, change, sort, words = FAULTS[name]
    model_of(kind).save(tmp_path / "source.keras")
    wrong = tf.lite.TFLiteConverter.from_keras_model(model_of(kind, change, **options)).convert()
    (tmp_path / "target.tflite").write_bytes(wrong)
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).normal(size=(8, STEPS, WIDTH)).astype(np.float32))
    data = DataReference("tensors", 8, str(tmp_path / "data.npz"), sha256_of(tmp_path / "data.npz"))
    sides = []
    for path in (tmp_path / "source.keras", tmp_path / "target.tflite"):
        model = Model(path.suffix[1:], str(path), sha256_of(path))
        sides.append(Subject(model, framework(model.framework).describe(model).inputs, data, None))
    result = repair_models(*sides, tmp_path, OPTIONS)
    (fault,) = result.before.faults
    assert fault.kind is sort
    assert words in fault.evidence[0]
    assert fault.target_layers[0].endswith("while")
    assert result.after.verdict is Verdict.EQUIVALENT
