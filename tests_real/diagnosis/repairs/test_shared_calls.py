"""A layer of a Keras model that is called twice, and is wrong in one of its calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from small_models import model_of

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.whole import sha256_of

COUNT = 16


def network(first: Any, second: Any) -> keras.Model:
    keras.utils.set_random_seed(5)
    vector = keras.Input((6,), name="vector")
    middle = layers.Dense(6, bias_initializer="normal", name="middle")(first(vector))
    return keras.Model(vector, layers.Dense(3, name="last")(second(middle)))


def saved(made: keras.Model, path: Path) -> Model:
    made.save(path)
    return model_of("keras", path)


def subject(model: Model, folder: Path) -> FedModel:
    inputs = framework(model.framework).describe(model).inputs
    path = folder / "samples.npz"
    np.savez(path, **{inputs[0].name: np.random.default_rng(6).normal(size=(COUNT, 6)).astype(np.float32)})
    return FedModel(model, inputs, DataReference("tensors", COUNT, str(path), sha256_of(path)), None)


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("slope", [0.3, 1.0])
def test_the_wrong_call_alone_is_repaired(wrong: int, slope: float, tmp_path: Path) -> None:
    """A slope of one is no activation at all: that call has to go."""
    act = layers.ReLU(name="act")
    other = layers.LeakyReLU(slope, name="other") if slope != 1 else layers.Activation("linear", name="other")
    right = saved(network(*((other, act) if wrong == 0 else (act, other))), tmp_path / "right.keras")
    target = saved(network(act, act), tmp_path / "wrong.keras")
    options = RepairOptions(Options(samples=COUNT, batch_size=8), seconds=60)
    result = repair_models(subject(right, tmp_path), subject(target, tmp_path), tmp_path / "out", options)
    assert result.before.faults
    assert result.mended, result.after.faults
    assert result.unseen_after.error < 1e-5
    assert len(result.edits) == 1
