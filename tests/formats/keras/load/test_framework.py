"""Keras models in both file formats."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import small_models as small
from keras import layers

from conrepair.formats.keras.load.framework import FRAMEWORK
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import DataError, ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of

IMAGES = small.images(3, channels_last=True)
VECTORS = small.vectors(3)


def saved(network: Any, path: Path) -> Model:
    network.save(path)
    return small.model_of("keras", path)


@pytest.fixture(params=["keras", "h5"])
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- Description ---


def test_description(tmp_path: Path, suffix: str) -> None:
    network = small.keras_convnet()
    about = FRAMEWORK.describe(saved(network, tmp_path / f"net.{suffix}"))
    assert about.format == "Keras"
    assert [str(spec) for spec in about.inputs] == ["image: float32[batch, 12, 10, 3]"]
    assert [str(spec) for spec in about.outputs] == ["logits: float32[batch, 6]"]
    assert about.operators == {
        "AveragePooling2D": 1, "BatchNormalization": 2, "Conv2D": 2, "Dense": 1, "DepthwiseConv2D": 1, "Flatten": 1,
        "InputLayer": 1, "MaxPooling2D": 1, "ReLU": 2,
    }  # fmt: skip
    assert about.parameters == network.count_params() == 520
    assert about.weights == {"float32": 520}
    assert (about.precision, about.opset) == ("float32", None)
    assert about.producer.startswith("keras ")


def test_nested_models_count_as_their_layers(tmp_path: Path, suffix: str) -> None:
    flat = FRAMEWORK.describe(saved(small.keras_convnet(), tmp_path / f"flat.{suffix}"))
    nested = FRAMEWORK.describe(saved(small.keras_convnet(nested=True), tmp_path / f"nested.{suffix}"))
    assert nested.operators == flat.operators
    assert nested.parameters == flat.parameters


def test_functions_of_keras_ops_count_as_operators(tmp_path: Path) -> None:
    vector = keras.Input((small.FEATURES,), name="vector")
    network = keras.Model(vector, keras.ops.sin(vector) * 2.0)
    model = saved(network, tmp_path / "net.keras")
    about = FRAMEWORK.describe(model)
    assert about.operators["Sin"] == about.operators["Multiply"] == 1
    assert about.parameters == 0
    result = FRAMEWORK.load(model).run({"vector": VECTORS})
    assert small.relative_l2(2 * np.sin(VECTORS), *result.values()) < 1e-6
    second = FRAMEWORK.load(model, second_opinion=True).run({"vector": VECTORS})
    assert 0 < small.relative_l2(*second.values(), *result.values()) < 1e-6


def test_fixed_batch(tmp_path: Path, suffix: str) -> None:
    model = saved(small.fixed_batch(small.keras_convnet(), 3), tmp_path / f"net.{suffix}")
    about = FRAMEWORK.describe(model)
    assert (about.inputs[0].shape[0], about.outputs[0].shape[0]) == (3, 3)
    with pytest.raises(DataError, match="input image"):
        FRAMEWORK.load(model).run({"image": IMAGES[:2]})


def test_outputs_of_one_layer_have_different_names(tmp_path: Path, suffix: str) -> None:
    vector = keras.Input((small.FEATURES,), name="vector")
    shared = layers.Dense(small.FEATURES, name="shared")
    network = keras.Model(vector, [shared(vector), shared(shared(vector))])
    model = saved(network, tmp_path / f"net.{suffix}")
    result = FRAMEWORK.load(model).run({"vector": VECTORS})
    assert [spec.name for spec in FRAMEWORK.describe(model).outputs] == ["shared", "shared_2"] == list(result)
    for expected, array in zip(network(VECTORS), result.values(), strict=True):
        np.testing.assert_array_equal(array, expected)


def test_second_opinion_of_layers_in_layers(tmp_path: Path) -> None:
    """Bit for bit a model that was built in float64."""

    def build() -> Any:
        steps = keras.Input((small.FEATURES, 3), name="steps")
        values = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(steps)
        return keras.Model(steps, layers.Conv1D(3, 2, activation=layers.LeakyReLU(0.3))(values))

    network = build()
    keras.config.set_dtype_policy("float64")
    try:
        double = build()
    finally:
        keras.config.set_dtype_policy("float32")
    double.set_weights(network.get_weights())
    feed = np.random.default_rng(1).normal(size=(2, small.FEATURES, 3)).astype(np.float32)
    result = FRAMEWORK.load(saved(network, tmp_path / "net.keras"), second_opinion=True).run({"steps": feed})
    (array,) = result.values()
    assert small.relative_l2(double(feed).numpy(), array) < 1e-14


# --- Running ---


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_run_is_what_keras_gives(tmp_path: Path, suffix: str, nested: bool, count: int) -> None:
    network = small.keras_convnet(nested=nested)
    result = FRAMEWORK.load(saved(network, tmp_path / f"net.{suffix}")).run({"image": IMAGES[:count]})
    assert list(result) == ["logits"]
    assert small.relative_l2(network(IMAGES[:count]), result["logits"]) < 1e-6


def test_sequential(tmp_path: Path, suffix: str) -> None:
    network = keras.Sequential(
        [
            keras.Input((small.FEATURES,), name="vector"),
            keras.Sequential([layers.Dense(5, activation="relu"), layers.Dense(3)]),
            layers.Softmax(name="probabilities"),
        ]
    )
    model = saved(network, tmp_path / f"net.{suffix}")
    assert FRAMEWORK.describe(model).operators["Dense"] == 2
    result = FRAMEWORK.load(model).run({"vector": VECTORS})
    assert small.relative_l2(network(VECTORS), result["probabilities"]) < 1e-6


def test_several_inputs_and_outputs(tmp_path: Path, suffix: str) -> None:
    network = small.keras_pair()
    model = saved(network, tmp_path / f"net.{suffix}")
    about = FRAMEWORK.describe(model)
    assert [(spec.name, spec.shape[1:]) for spec in about.inputs] == [("scene", (12, 10, 3)), ("context", (4,))]
    assert [(spec.name, spec.shape[1:]) for spec in about.outputs] == [("picture", (6, 5, 5)), ("logits", (6,))]
    result = FRAMEWORK.load(model).run({"context": VECTORS, "scene": IMAGES})
    for expected, array in zip(network([IMAGES, VECTORS]), result.values(), strict=True):
        assert small.relative_l2(expected, array) < 1e-6


def test_inputs_and_outputs_in_a_dict(tmp_path: Path, suffix: str) -> None:
    network = small.keras_pair(as_dict=True)
    model = saved(network, tmp_path / f"net.{suffix}")
    feeds = {"context": VECTORS, "scene": IMAGES}
    result = FRAMEWORK.load(model).run(feeds)
    assert {spec.name: spec.shape[1:] for spec in FRAMEWORK.describe(model).outputs} == {
        "logits": (6,),
        "picture": (6, 5, 5),
    }
    for name, expected in network(feeds).items():
        assert small.relative_l2(expected, result[name]) < 1e-6


def test_twin_inputs_are_not_swapped(tmp_path: Path, suffix: str) -> None:
    network = small.keras_twins()
    feeds = {"first": small.vectors(3, seed=5), "second": small.vectors(3, seed=6)}
    result = FRAMEWORK.load(saved(network, tmp_path / f"net.{suffix}")).run(feeds)
    for expected, name in zip(network([feeds["second"], feeds["first"]]), ("sum", "difference"), strict=True):
        assert small.relative_l2(expected, result[name]) < 1e-6


def test_whole_numbers(tmp_path: Path, suffix: str) -> None:
    network = small.keras_text()
    model = saved(network, tmp_path / f"net.{suffix}")
    assert str(FRAMEWORK.describe(model).inputs[0]) == "text: int32[batch, 5]"
    result = FRAMEWORK.load(model).run({"text": small.tokens(3)})  # int64 feeds are cast
    assert small.relative_l2(network(small.tokens(3)), result["logits"]) < 1e-6
    with pytest.raises(DataError, match=r"input text: int32.*whole numbers"):
        FRAMEWORK.load(model).run({"text": small.tokens(3, dtype="float32")})
    with pytest.raises(DataError, match="input text"):
        FRAMEWORK.load(model).run({"text": small.tokens(3) + 2**31})


@pytest.mark.parametrize(("feeds", "named"), small.WRONG_FEEDS)
def test_wrong_feeds(tmp_path: Path, feeds: dict[str, small.Array], named: str) -> None:
    runnable = FRAMEWORK.load(saved(small.keras_pair(), tmp_path / "net.keras"))
    with pytest.raises(DataError, match=named):
        runnable.run(feeds)


# --- Precision ---


@pytest.mark.parametrize(
    ("policy", "precision"), [("float16", "float16"), ("mixed_float16", "mixed float16"), ("float64", "float64")]
)
def test_precisions(tmp_path: Path, policy: str, precision: str) -> None:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        network = small.keras_convnet()
    finally:
        keras.config.set_dtype_policy(before)
    model = saved(network, tmp_path / "net.keras")
    about = FRAMEWORK.describe(model)
    assert about.precision == precision
    assert about.outputs[0].dtype == policy.removeprefix("mixed_")
    result = FRAMEWORK.load(model).run({"image": IMAGES})["logits"]
    assert result.dtype == about.outputs[0].dtype
    assert small.relative_l2(network(IMAGES), result) < 1e-3


def test_quantized_weights(tmp_path: Path) -> None:
    network = keras.Sequential([keras.Input((small.FEATURES,), name="vector"), layers.Dense(40, name="last")])
    network.quantize("int8")
    model = saved(network, tmp_path / "net.keras")
    assert FRAMEWORK.describe(model).precision == "quantized weights"
    assert small.relative_l2(network(VECTORS), FRAMEWORK.load(model).run({"vector": VECTORS})["last"]) < 1e-6
    with pytest.raises(ModelLoadError, match=r"net\.keras can't be rebuilt in float64"):
        FRAMEWORK.load(model, second_opinion=True)


@pytest.mark.parametrize(
    ("build", "feeds"),
    [
        (small.keras_convnet, {"image": IMAGES}),
        (lambda: small.keras_convnet(nested=True), {"image": IMAGES}),
        (small.keras_pair, {"scene": IMAGES, "context": VECTORS}),
        (lambda: small.keras_pair(as_dict=True), {"scene": IMAGES, "context": VECTORS}),
        (small.keras_text, {"text": small.tokens(3)}),
    ],
)
def test_the_second_opinion_is_close_but_another(
    tmp_path: Path, suffix: str, build: Callable[[], Any], feeds: dict[str, small.Array]
) -> None:
    model = saved(build(), tmp_path / f"net.{suffix}")
    first = FRAMEWORK.load(model).run(feeds)
    second = FRAMEWORK.load(model, second_opinion=True)
    assert [spec.name for spec in second.inputs] == [spec.name for spec in FRAMEWORK.load(model).inputs]
    assert {spec.dtype for spec in second.inputs} <= {"float64", "int32"}
    for name, array in second.run(feeds).items():
        assert array.dtype == np.float64
        assert 0 < small.relative_l2(array, first[name]) < 1e-5


def test_the_second_opinion_computes_in_float64_everywhere(tmp_path: Path) -> None:
    from conrepair.formats.keras.load.framework import KerasRunnable, flat_layers

    model = saved(small.keras_convnet(nested=True), tmp_path / "net.keras")
    network = KerasRunnable(model, double=True).network
    types = {layer.name: layer.compute_dtype for layer in flat_layers(network) if layer.weights}
    assert set(types.values()) == {"float64"}, types


# --- Models that can't be used ---


def with_lambda() -> Any:
    return keras.Sequential([keras.Input((small.FEATURES,), name="vector"), layers.Lambda(lambda x: x * 2)])


def test_code_is_refused_without_trust(tmp_path: Path, suffix: str) -> None:
    model = saved(with_lambda(), tmp_path / f"net.{suffix}")
    with pytest.raises(ModelLoadError, match=rf"net\.{suffix} holds code \(a Lambda layer\).*--trust"):
        FRAMEWORK.describe(model)


def test_a_vocabulary_outside_of_the_file_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nb\n")
    lookup = layers.StringLookup(vocabulary=str(tmp_path / "words.txt"))
    model = saved(keras.Sequential([keras.Input((1,), dtype="string", name="text"), lookup]), tmp_path / "net.keras")
    with zipfile.ZipFile(model.path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(members["config.json"])
    (layer,) = (item for item in config["config"]["layers"] if item["class_name"] == "StringLookup")
    layer["config"]["vocabulary"] = str(tmp_path / "words.txt")
    with zipfile.ZipFile(model.path, "w") as archive:
        for name, content in (members | {"config.json": json.dumps(config).encode()}).items():
            archive.writestr(name, content)
    with pytest.raises(
        ModelLoadError, match=r"net\.keras reads a vocabulary from a file outside of it.*--trust"
    ) as raised:
        FRAMEWORK.describe(model)
    assert "Lambda" not in str(raised.value)


def test_code_runs_with_trust(tmp_path: Path, suffix: str) -> None:
    model = replace(saved(with_lambda(), tmp_path / f"net.{suffix}"), trust=True)
    np.testing.assert_array_equal(*FRAMEWORK.load(model).run({"vector": VECTORS}).values(), 2 * VECTORS)
    with pytest.raises(ModelLoadError, match="float64"):
        FRAMEWORK.load(model, second_opinion=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_model_that_was_never_built(tmp_path: Path, suffix: str) -> None:
    model = saved(keras.Sequential([layers.Dense(3)]), tmp_path / f"net.{suffix}")
    with pytest.raises(ModelLoadError, match="not a built Keras model"):
        FRAMEWORK.describe(model)


@keras.saving.register_keras_serializable("conrepair tests")
class Subclassed(keras.Model):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.dense = layers.Dense(3)

    def call(self, vector: Any) -> Any:
        return self.dense(vector)


def test_a_subclassed_model_has_no_defined_inputs(tmp_path: Path) -> None:
    network = Subclassed()
    network(VECTORS)
    with pytest.raises(ModelLoadError, match="not a built Keras model with defined inputs"):
        FRAMEWORK.describe(saved(network, tmp_path / "net.keras"))


def test_an_unknown_class_is_named(tmp_path: Path) -> None:
    saved(small.keras_text(), tmp_path / "known.keras")
    path = tmp_path / "net.keras"
    with zipfile.ZipFile(tmp_path / "known.keras") as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            renamed = content.replace(b'"class_name": "Embedding"', b'"class_name": "NoSuchLayer"')
            target.writestr(name, renamed if name == "config.json" else content)
    with pytest.raises(ModelLoadError, match=r"net\.keras.*NoSuchLayer"):
        FRAMEWORK.describe(small.model_of("keras", path))


def test_damaged_files_are_named(tmp_path: Path, suffix: str) -> None:
    model = saved(small.keras_convnet(), tmp_path / f"net.{suffix}")
    folder = tmp_path / "damaged"
    folder.mkdir()
    for path in small.damaged_copies(Path(model.path), folder):
        for action in (FRAMEWORK.describe, FRAMEWORK.load):
            with pytest.raises(ModelLoadError) as error:
                action(replace(model, path=str(path)))
            assert str(path) in str(error.value)
            assert "a Keras model" in str(error.value) or "can't be looked through" in str(error.value)


def test_the_file_stays_as_it_is(tmp_path: Path, suffix: str) -> None:
    model = saved(small.keras_convnet(), tmp_path / f"net.{suffix}")
    FRAMEWORK.describe(model)
    FRAMEWORK.load(model).run({"image": IMAGES})
    FRAMEWORK.load(model, second_opinion=True)
    assert sha256_of(Path(model.path)) == model.sha256
    assert len(list(tmp_path.iterdir())) == 1


# --- The size of the table that an integer input indexes ---


def test_table_sizes(tmp_path: Path, suffix: str) -> None:
    about = FRAMEWORK.describe(saved(small.keras_text(), tmp_path / f"net.{suffix}"))
    assert about.inputs[0].high == small.WORDS


def test_table_sizes_of_several_inputs(tmp_path: Path, suffix: str) -> None:
    """Two tables for one input (the smaller counts), a nested and a shared one, and an input without."""
    words, kinds, free = (keras.Input((4,), dtype="int32", name=name) for name in ("words", "kinds", "free"))
    inner = keras.Sequential([layers.Embedding(9, 3), layers.Flatten()], name="inner")
    shared = layers.Embedding(11, 3)
    network = keras.Model(
        [free, words, kinds],
        layers.Concatenate()(
            [
                layers.Flatten()(shared(words)), inner(words), layers.Flatten()(shared(kinds)),
                layers.Rescaling(0.5)(free),
            ]
        ),
    )  # fmt: skip
    about = FRAMEWORK.describe(saved(network, tmp_path / f"net.{suffix}"))
    assert {spec.name: spec.high for spec in about.inputs} == {"words": 9, "kinds": 11, "free": None}


def test_table_size_of_a_sequential_model(tmp_path: Path, suffix: str) -> None:
    network = keras.Sequential(
        [keras.Input((4,), dtype="int32", name="words"), layers.Embedding(9, 3), layers.Flatten()]
    )
    assert FRAMEWORK.describe(saved(network, tmp_path / f"net.{suffix}")).inputs[0].high == 9
