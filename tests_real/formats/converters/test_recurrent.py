"""TFLite: recurrent Keras networks of an open batch, GELU and the order of a signature on the way to ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models as small

from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework


def keras_file(network: Any, folder: Path) -> Model:
    network.save(folder / "net.keras")
    return small.model_of("keras", folder / "net.keras")


def converted(source: Model, name: str, folder: Path, **options: Any) -> Model:
    folder.mkdir()
    step = converter(name)
    return small.model_of(step.target, folder / step.convert(source, folder, step.complete(options)))


def answers(model: Model, *arrays: small.Array) -> list[small.Array]:
    runnable = framework(model.framework).load(model)
    feeds = {spec.name: array for spec, array in zip(runnable.inputs, arrays, strict=True)}
    return list(runnable.run(feeds).values())


def recurrent(length: int | None = 5) -> Any:
    import keras

    keras.utils.set_random_seed(0)
    x = keras.Input((length, 3), name="x")
    y = keras.layers.Bidirectional(keras.layers.LSTM(4, return_sequences=True))(x)
    return keras.Model(x, keras.layers.Dense(2)(keras.layers.GRU(4)(y)))


def test_recurrent_layers_take_any_batch_in_tflite(tmp_path: Path) -> None:
    source = keras_file(recurrent(), tmp_path)
    target = converted(source, "keras-tflite", tmp_path / "tflite")
    for batch in (1, 3):
        data = np.random.default_rng(batch).normal(size=(batch, 5, 3)).astype(np.float32)
        np.testing.assert_allclose(answers(target, data)[0], answers(source, data)[0], rtol=1e-5, atol=1e-6)
    assert "WHILE" not in framework("tflite").describe(target).operators


def test_loops_stay_where_they_are_asked_for_or_the_batch_is_fixed(tmp_path: Path) -> None:
    source = keras_file(recurrent(), tmp_path)
    with pytest.raises(Exception, match="TensorListReserve"):  # TensorFlow's ConverterError, of no public module
        converted(source, "keras-tflite", tmp_path / "loops", unroll=4)
    (tmp_path / "one").mkdir()
    fixed = keras_file(small.fixed_batch(recurrent(), 1), tmp_path / "one")
    target = converted(fixed, "keras-tflite", tmp_path / "tflite")
    assert "WHILE" in framework("tflite").describe(target).operators
    data = np.random.default_rng(0).normal(size=(1, 5, 3)).astype(np.float32)
    np.testing.assert_allclose(answers(target, data)[0], answers(fixed, data)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_of_tflite_becomes_onnx(tmp_path: Path, approximate: bool) -> None:
    import keras

    keras.utils.set_random_seed(0)
    x = keras.Input((6,), name="x")
    y = keras.ops.gelu(keras.layers.Dense(8)(x), approximate=approximate)
    source = keras_file(keras.Model(x, keras.layers.Dense(2)(y)), tmp_path)
    middle = converted(source, "keras-tflite", tmp_path / "tflite")
    target = converted(middle, "tflite-onnx-tf2onnx", tmp_path / "onnx")
    data = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    np.testing.assert_allclose(answers(target, data)[0], answers(middle, data)[0], rtol=1e-5, atol=1e-6)


def test_inputs_and_outputs_of_tflite_keep_the_signatures_order(tmp_path: Path) -> None:
    import keras

    keras.utils.set_random_seed(0)
    image, vector = keras.Input((4, 4, 3), name="image"), keras.Input((8,), name="vector")
    maps = keras.layers.Conv2D(2, 3)(image) * keras.layers.Reshape((1, 1, 2))(keras.layers.Dense(2)(vector))
    scores = keras.layers.Dense(5)(keras.layers.GlobalAveragePooling2D()(maps))
    source = keras_file(keras.Model([image, vector], [scores, maps]), tmp_path)
    middle = converted(source, "keras-tflite", tmp_path / "tflite")
    target = converted(middle, "tflite-onnx-tf2onnx", tmp_path / "onnx")
    one, two = (framework(model.framework).load(model) for model in (middle, target))
    assert [spec.name for spec in two.inputs] == [spec.name for spec in one.inputs] == ["image", "vector"]
    assert [spec.name for spec in two.outputs] == [spec.name for spec in one.outputs]
    assert [len(spec.shape) for spec in two.outputs] == [2, 4]
