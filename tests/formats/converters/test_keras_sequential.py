"""Sequential models, which Keras loads without having called them: they've no `input` then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models as small

from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.registry import framework


@pytest.fixture(scope="module")
def network() -> Any:
    import keras
    from keras import layers

    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(5, activation="softmax"),
        ]
    )


@pytest.mark.parametrize("name", ["keras-tflite", "keras-savedmodel", "keras-onnx-tf2onnx", "keras-onnx-export"])
def test_it_converts(name: str, network: Any, tmp_path: Path) -> None:
    network.save(tmp_path / "net.keras")
    source = small.model_of("keras", tmp_path / "net.keras")
    step = converter(name)
    out = tmp_path / "out"
    out.mkdir()
    path = out / step.convert(source, out, {key: option.default for key, option in step.options.items()})
    target = framework(step.target).load(small.model_of(step.target, path))
    array = np.random.default_rng(2).normal(size=(1, 8, 8, 3)).astype(np.float32)
    (given,) = target.run({target.inputs[0].name: array}).values()
    assert small.relative_l2(np.asarray(network(array)), given) < 1e-5


def test_it_is_rebuilt_in_float64(network: Any, tmp_path: Path) -> None:
    network.save(tmp_path / "net.keras")
    exact = framework("keras").load(small.model_of("keras", tmp_path / "net.keras"), second_opinion=True)
    array = np.random.default_rng(2).normal(size=(2, 8, 8, 3)).astype(np.float32)
    (given,) = exact.run({exact.inputs[0].name: array}).values()
    assert given.dtype == np.float64
    assert small.relative_l2(np.asarray(network(array)), given) < 1e-5
