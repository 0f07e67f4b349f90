"""Pads of a transposed convolution are repaired in the target's own format, TFLite's too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.whole import sha256_of
from tests.support.small_models import model_of

_OPTIONS = RepairOptions(Options(samples=4, batch_size=2), seconds=60, unseen=4)


def network(kernel: int, crop: int | None) -> Any:
    """Twice the size by a transposed convolution with SAME padding, or one without that's cropped at its begin."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(1)
    image = keras.Input((6, 6, 3))
    hidden = layers.Conv2D(4, 3, padding="same", activation="relu")(image)
    padding = "same" if crop is None else "valid"
    hidden = layers.Conv2DTranspose(4, kernel, strides=2, padding=padding)(hidden)
    if crop is not None:
        hidden = layers.Cropping2D(((crop, 0), (crop, 0)))(hidden)
    return keras.Model(image, layers.Conv2D(3, 3)(layers.ReLU()(hidden)))


def converted(model: Any, path: Path) -> Model:
    import tensorflow as tf

    path.write_bytes(tf.lite.TFLiteConverter.from_keras_model(model).convert())
    return model_of("tflite", path)


@pytest.mark.parametrize("kernel", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_pads_are_repaired_in_tflite(kernel: int, tmp_path: Path) -> None:
    right = network(kernel, None)
    right.save(tmp_path / "right.keras")
    wrong = network(kernel, kernel - 2)
    wrong.set_weights(right.get_weights())
    target = converted(wrong, tmp_path / "wrong.tflite")
    sides = []
    for model in (model_of("keras", tmp_path / "right.keras"), target):
        inputs = framework(model.framework).describe(model).inputs
        drawn = np.random.default_rng(3).normal(size=(8, 6, 6, 3)).astype(np.float32)
        path = tmp_path / f"{model.framework}.npz"
        np.savez(path, **{inputs[0].name: drawn})
        sides.append(FedModel(model, inputs, DataReference("tensors", 8, str(path), sha256_of(path)), None))
    result = repair_models(sides[0], sides[1], tmp_path / "out", _OPTIONS)
    assert result.before.faults
    assert result.mended, (result.edits, result.refused, result.failed)
    assert result.delivery is None
    assert result.model is not None
    assert result.model.framework == "tflite"
    assert result.unseen_after.error < 1e-5
