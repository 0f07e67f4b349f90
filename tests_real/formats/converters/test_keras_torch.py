"""Keras to PyTorch by Keras's PyTorch backend: recurrent networks, fixed batches, names, a worker without Keras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models as small

from conrepair.application.engine.job_table import JOBS
from conrepair.application.jobs.values import ConversionStep
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.processes.workers import Failure, Job, Outcome, Success, Workers
from conrepair.ground.runtime.typed import typed

pytestmark = pytest.mark.timeout(600)
STEP = converter("keras-torch")


def saved(network: Any, folder: Path) -> Model:
    network.save(folder / "net.keras")
    return small.model_of("keras", folder / "net.keras")


def convert(source: Model, folder: Path) -> tuple[Outcome, Path]:
    """In a worker, which imports PyTorch and no Keras."""
    out = folder / "out"
    out.mkdir()
    inputs = framework("keras").describe(source).inputs
    payload = {"model": source, "step": ConversionStep.of(STEP, {}), "inputs": inputs}
    with Workers(1, jobs=JOBS) as workers:
        return workers.call(Job("convert", payload, out, STEP.needs, 300.0)), out


def converted(source: Model, folder: Path) -> Model:
    outcome, out = convert(source, folder)
    assert isinstance(outcome, Success), outcome
    value = outcome.value["model"]
    return typed(Model, value | {"path": str(out / value["path"])})


def difference(source: Model, target: Model, array: small.Array) -> float:
    one, two = framework("keras").load(source), framework("torch").load(target)
    (expected,) = one.run({one.inputs[0].name: array}).values()
    (given,) = two.run({two.inputs[0].name: array}).values()
    return small.relative_l2(expected, given)


@pytest.mark.slow
def test_recurrent_layers_and_any_batch(tmp_path: Path) -> None:
    import keras
    from keras import layers

    keras.utils.set_random_seed(1)
    network = keras.Sequential(
        [
            keras.Input((7, 5)),
            layers.Bidirectional(layers.LSTM(6, return_sequences=True)),
            layers.GRU(4),
            layers.Dense(3, activation="softmax", name="scores"),
        ]
    )
    source = saved(network, tmp_path)
    target = converted(source, tmp_path)
    assert [spec.name for spec in framework("torch").load(target).outputs] == ["scores"]
    for count in (1, 4):
        array = np.random.default_rng(count).normal(size=(count, 7, 5)).astype(np.float32)
        assert difference(source, target, array) < 1e-5


@pytest.mark.slow
def test_a_network_that_fixes_the_batch_gets_one_of_1(tmp_path: Path) -> None:
    import keras
    from keras import layers

    network = keras.Sequential([keras.Input((3, 5, 4, 2)), layers.ConvLSTM2D(2, 3), layers.Flatten()])
    source = saved(network, tmp_path)
    target = converted(source, tmp_path)
    assert framework("torch").load(target).inputs[0].shape == (1, 3, 5, 4, 2)
    assert difference(source, target, small.vectors(1, 120).reshape(1, 3, 5, 4, 2)) < 1e-5


def test_names_that_are_no_identifiers(tmp_path: Path) -> None:
    import keras
    from keras import layers

    network = keras.Sequential([keras.Input((4,), name="the-input"), layers.Dense(3, name="class")])
    source = saved(network, tmp_path)
    target = converted(source, tmp_path)
    assert difference(source, target, small.vectors(3)) < 1e-5


@pytest.mark.slow  # the quick ones convert in such a process, too
def test_average_pooling_of_the_torch_backend_counts_its_padding(tmp_path: Path) -> None:
    """Why the converter isn't automatic. When Keras fixes it, it may become so."""
    import keras
    from keras import layers

    network = keras.Sequential([keras.Input((6, 2)), layers.AveragePooling1D(3, strides=2, padding="same")])
    source = saved(network, tmp_path)
    array = small.vectors(2, 12).reshape(2, 6, 2)
    assert difference(source, converted(source, tmp_path), array) > 1e-3
    assert not STEP.automatic


def test_code_in_the_file_is_refused(tmp_path: Path) -> None:
    import keras
    from keras import layers

    network = keras.Sequential([keras.Input((4,)), layers.Lambda(lambda x: x + 1)])
    network.save(tmp_path / "net.keras")
    source = small.model_of("keras", tmp_path / "net.keras", trust=False)
    payload = {"model": source, "step": ConversionStep.of(STEP, {})}
    (tmp_path / "out").mkdir()
    with Workers(1, jobs=JOBS) as workers:
        outcome = workers.call(Job("convert", payload, tmp_path / "out", STEP.needs, 300.0))
    assert isinstance(outcome, Failure)
    assert "holds code (a Lambda layer)" in str(outcome)
    assert outcome.exit_code == ExitCode.EXECUTION
