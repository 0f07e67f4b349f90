"""Files of Keras 2 (TensorFlow 2.3 to 2.15) against what Keras 2 itself computed of them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import keras
import keras2_files
import numpy as np
import pytest
import small_models as small

from conrepair.cli import main
from conrepair.frameworks.keras_legacy import readable_by_keras3
from conrepair.frameworks.registry import framework
from conrepair.runtime.errors import ModelLoadError


@pytest.mark.parametrize("name", sorted(keras2_files.NETWORKS))
def test_what_keras2_computed(name: str, tmp_path: Path) -> None:
    path = keras2_files.write(name, tmp_path / "net.h5")
    before = path.read_bytes()
    runnable = framework("keras").load(small.model_of("keras", path))
    [given] = runnable.run({runnable.inputs[0].name: keras2_files.question(name)}).values()
    expected = keras2_files.answers(name)
    assert np.ptp(expected) > 1e-3
    assert small.relative_l2(expected, given) < (2e-3 if name == "mixed" else 1e-5)
    assert path.read_bytes() == before


def changed(name: str, kind: str, **options: Any) -> Any:
    """A network's configuration with other options in the layers of a class."""
    config = copy.deepcopy(keras2_files.NETWORKS[name]["config"])
    layers = [layer for layer in config["config"]["layers"] if layer["class_name"] == kind]
    assert layers
    for layer in layers:
        layer["config"] |= options
    return config


@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("seq", "DepthwiseConv2D", {"groups": 2}),
        ("cnn", "Conv2D", {"unheard_of": 3}),
        ("rnn", "LSTM", {"time_major": True}),
        ("oplambda", "TFOpLambda", {"function": "math.special"}),
    ],
)
def test_options_that_mean_something_are_refused(
    name: str, kind: str, options: dict[str, Any], tmp_path: Path
) -> None:
    path = keras2_files.write(name, tmp_path / "net.h5", changed(name, kind, **options))
    with pytest.raises(ModelLoadError, match=kind):
        framework("keras").load(small.model_of("keras", path))


def test_files_that_keras3_reads_are_read_as_they_are(tmp_path: Path) -> None:
    network = small.keras_convnet()
    for name in ("net.h5", "net.keras"):
        network.save(tmp_path / name)
        with readable_by_keras3(tmp_path / name) as path:
            assert keras.saving.load_model(path, compile=False).count_params() == network.count_params()
    with readable_by_keras3(tmp_path / "net.keras") as path:
        assert path == tmp_path / "net.keras"


def test_a_network_of_functions_converts_and_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keras2_files.write("oplambda", tmp_path / "net.h5")
    assert main(["convert", "net.h5", "--to", "tflite", "-o", "net.tflite", "--quiet"]) == 0
    assert main(["localize", "net.h5", "net.tflite", "-o", "found", "--quiet"]) == 0
