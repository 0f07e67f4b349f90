"""Files of Keras 2 (TensorFlow 2.3 to 2.15) against what Keras 2 itself computed of them."""

from __future__ import annotations

import base64
import copy
import json
import marshal
from pathlib import Path
from typing import Any

import h5py
import keras
import keras2_files
import numpy as np
import pytest
import small_models as small
import tensorflow as tf

from conrepair.application.cli import main
from conrepair.formats.keras.load.legacy import readable_by_keras3
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.errors import ModelLoadError


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


def test_archives_of_keras2_are_what_it_computed(tmp_path: Path) -> None:
    path = keras2_files.write_archive("seq", tmp_path / "net.keras")
    before = path.read_bytes()
    runnable = framework("keras").load(small.model_of("keras", path))
    [given] = runnable.run({runnable.inputs[0].name: keras2_files.question("seq")}).values()
    assert small.relative_l2(keras2_files.answers("seq"), given) < 1e-5
    assert path.read_bytes() == before


def test_functions_of_layers_are_loaded_of_trusted_files(tmp_path: Path) -> None:
    code = base64.encodebytes(marshal.dumps((lambda x: tf.nn.relu(x) * 2.0).__code__)).decode()
    told = {"function_type": "lambda", "module": "__main__", "output_shape_type": "raw", "output_shape_module": None}
    config = {"name": "twice", "function": [code, None, None], "output_shape": None, "arguments": {}, **told}
    more = ({"class_name": "Lambda", "config": config},)
    path = keras2_files.write_archive("seq", tmp_path / "net.keras", more)
    with pytest.raises(ModelLoadError, match=r"holds code \(a Lambda layer\).*--trust"):
        framework("keras").load(small.model_of("keras", path))
    runnable = framework("keras").load(small.model_of("keras", path, trust=True))
    [given] = runnable.run({runnable.inputs[0].name: keras2_files.question("seq")}).values()
    expected = np.maximum(keras2_files.answers("seq"), 0) * 2
    assert np.ptp(expected) > 1e-3
    assert small.relative_l2(expected, given) < 1e-5


def test_weights_without_a_network_are_told_as_such(tmp_path: Path) -> None:
    whole = keras2_files.write("seq", tmp_path / "net.h5")
    with h5py.File(whole) as file, h5py.File(tmp_path / "weights.h5", "w") as weights:
        for name, value in file["model_weights"].attrs.items():
            weights.attrs[name] = value
        for name in file["model_weights"]:
            file["model_weights"].copy(name, weights)
    with pytest.raises(ModelLoadError, match=r"/weights\.h5 holds weights without a network.*`model\.save`") as error:
        framework("keras").load(small.model_of("keras", tmp_path / "weights.h5"))
    assert error.value.exit_code == 3


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
    with pytest.raises(ModelLoadError, match=f"{kind}.*Keras 2.21.0 wrote it.*SavedModel"):
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


def nested(calls: int) -> tuple[Any, list[str]]:
    """A functional network as Keras 2 writes it, with a Sequential in it that's called once or twice."""

    def layer(kind: str, name: str, config: dict[str, Any], nodes: list[Any]) -> dict[str, Any]:
        return {"class_name": kind, "config": {"name": name, **config}, "name": name, "inbound_nodes": nodes}

    given = {"batch_input_shape": [None, 4], "dtype": "float32", "sparse": False, "ragged": False}
    dense = {"units": 4, "activation": "tanh", "use_bias": True, "dtype": "float32", "trainable": True}
    inner = [layer("InputLayer", "inner_input", given, []), layer("Dense", "inner", dense, [])]
    nodes = [[[["x", 0, 0, {}]]], [[["x", 0, 0, {}]], [["sequential", 1, 0, {}]]]][calls - 1]
    layers = [layer("InputLayer", "x", given, []), layer("Sequential", "sequential", {"layers": inner}, nodes)]
    config = {
        "name": "net",
        "layers": layers,
        "input_layers": [["x", 0, 0]],
        "output_layers": [["sequential", calls, 0]],
    }
    return {"class_name": "Functional", "config": config}, ["inner/kernel:0", "inner/bias:0"]


@pytest.mark.parametrize("calls", [1, 2])
def test_a_network_in_a_network_is_called_as_keras2_counts(calls: int, tmp_path: Path) -> None:
    config, names = nested(calls)
    kernel, bias = np.random.default_rng(0).normal(size=(4, 4)), np.random.default_rng(1).normal(size=4)
    with h5py.File(tmp_path / "net.h5", "w") as file:
        file.attrs["keras_version"], file.attrs["backend"] = "2.15.0", "tensorflow"
        file.attrs["model_config"] = json.dumps(config)
        group = file.create_group("model_weights")
        group.attrs["layer_names"] = [b"x", b"sequential"]
        group.create_group("x").attrs["weight_names"] = []
        held = group.create_group("sequential")
        held.attrs["weight_names"] = [name.encode() for name in names]
        for name, numbers in zip(names, (kernel, bias), strict=True):
            held.create_dataset(name, data=numbers.astype(np.float32))
    runnable = framework("keras").load(small.model_of("keras", tmp_path / "net.h5"))
    given = expected = small.vectors(3, 4)
    for _ in range(calls):
        expected = np.tanh(expected @ kernel + bias)
    [answers] = runnable.run({"x": given}).values()
    np.testing.assert_allclose(answers, expected, rtol=1e-4, atol=1e-5)


def test_a_network_in_a_network_of_keras3_is_read_as_it_is(tmp_path: Path) -> None:
    inner = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4, activation="tanh")])
    x = keras.Input((4,), name="x")
    network = keras.Model(x, inner(inner(x)))
    network.save(tmp_path / "net.h5")
    runnable = framework("keras").load(small.model_of("keras", tmp_path / "net.h5"))
    [answers] = runnable.run({"x": small.vectors(3, 4)}).values()
    np.testing.assert_allclose(answers, network.predict_on_batch(small.vectors(3, 4)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["seq", "cnn", "oplambda"])
def test_archives_of_other_networks(name: str, tmp_path: Path) -> None:
    path = keras2_files.write_archive(name, tmp_path / "net.keras")
    runnable = framework("keras").load(small.model_of("keras", path))
    [given] = runnable.run({runnable.inputs[0].name: keras2_files.question(name)}).values()
    assert small.relative_l2(keras2_files.answers(name), given) < 1e-5
