"""TensorFlow: SavedModel folders and frozen graphs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models as small
import tensorflow as tf

from conrepair.formats.models.model import Model
from conrepair.formats.tensorflow.load.framework import FRAMEWORK
from conrepair.ground.runtime.errors import DataError, ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of

IMAGES = small.images(3, channels_last=True)
VECTORS = small.vectors(3)
PARTS = ("saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001")


def exported(network: Any, folder: Path) -> Model:
    network.export(str(folder), verbose=False)
    return small.model_of("tensorflow", folder)


def concrete(network: Any) -> Any:
    """A Keras model as a function to freeze."""
    item = network.inputs[0]
    call = tf.function(lambda tensor: network(tensor))
    return call.get_concrete_function(tf.TensorSpec((None, *item.shape[1:]), item.dtype, name=item.name))


@pytest.fixture(scope="module")
def convnet() -> Any:
    return small.keras_convnet()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, convnet: Any) -> Path:
    folder = tmp_path_factory.mktemp("tensorflow")
    exported(convnet, folder / "net")
    small.freeze(concrete(convnet), folder / "net.pb")
    pair = small.tensorflow_pair()
    small.save_tensorflow(pair, folder / "pair")
    small.save_tensorflow(pair, folder / "unsigned", signature=False)
    small.freeze(pair.__call__.get_concrete_function(), folder / "pair.pb")
    return folder


def net(folder: Path, kind: str) -> Model:
    return small.model_of("tensorflow", folder / ("net" if kind == "saved" else "net.pb"))


def pair(folder: Path, kind: str) -> Model:
    return small.model_of("tensorflow", folder / ("pair" if kind == "saved" else "pair.pb"))


KINDS = ["saved", "frozen"]


# --- Description ---


@pytest.mark.parametrize("kind", KINDS)
def test_description(folder: Path, convnet: Any, kind: str) -> None:
    about = FRAMEWORK.describe(net(folder, kind))
    assert about.format == {"saved": "SavedModel", "frozen": "frozen graph"}[kind]
    assert [str(spec) for spec in about.inputs] == ["image: float32[batch, 12, 10, 3]"]
    assert [spec.shape for spec in about.outputs] == [("batch", 6)]
    expected = {"Conv2D": 2, "DepthwiseConv2dNative": 1, "Relu6": 2, "MaxPool": 1, "AvgPool": 1, "MatMul": 1}
    assert expected.items() <= about.operators.items()
    assert about.weights["float32"] == convnet.count_params()
    assert about.precision == "float32"
    assert about.producer.startswith("tensorflow ")
    if kind == "saved":
        assert about.parameters == convnet.count_params()
    else:  # constants of shapes and axes count too
        assert 0 <= about.parameters - convnet.count_params() < 16


def test_several_inputs_and_outputs_in_a_signature(folder: Path) -> None:
    about = FRAMEWORK.describe(pair(folder, "saved"))
    assert [str(spec) for spec in about.inputs] == [
        "context: float32[batch, 4]",
        "scene: float32[batch, 12, 10, 3]",
    ]
    assert [str(spec) for spec in about.outputs] == [
        "mixed: float32[batch, 5]",
        "picture: float32[batch, 6, 5, 5]",
    ]
    assert about.parameters == 3 * 3 * 3 * 5 + 4 * 5


def test_several_inputs_and_outputs_in_a_frozen_graph(folder: Path) -> None:
    about = FRAMEWORK.describe(pair(folder, "frozen"))
    assert {spec.name: spec.shape for spec in about.inputs} == {
        "scene": ("batch", 12, 10, 3),
        "context": ("batch", 4),
    }
    assert sorted(len(spec.shape) for spec in about.outputs) == [2, 4]


def test_more_than_ten_outputs_are_in_their_order(tmp_path: Path) -> None:
    class Many(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
        def __call__(self, x: Any) -> dict[str, Any]:
            return {f"output_{index}": x + float(index) for index in range(12)}

    runnable = FRAMEWORK.load(small.model_of("tensorflow", small.save_tensorflow(Many(), tmp_path / "many")))
    assert [spec.name for spec in runnable.outputs] == [f"output_{index}" for index in range(12)]
    result = runnable.run({"x": np.zeros((1, 2), np.float32)})
    assert [float(array[0, 0]) for array in result.values()] == [float(index) for index in range(12)]


def test_the_serving_signature_is_preferred(tmp_path: Path) -> None:
    class Signatures(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, name="x")])
        def one(self, x: Any) -> dict[str, Any]:
            return {"one": x + 1.0}

        @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, name="x")])
        def two(self, x: Any) -> dict[str, Any]:
            return {"two": x + 2.0}

    module = Signatures()
    tf.saved_model.save(module, str(tmp_path / "net"), signatures={"a": module.one, "serving_default": module.two})
    result = FRAMEWORK.load(small.model_of("tensorflow", tmp_path / "net")).run({"x": np.zeros(2, np.float32)})
    np.testing.assert_array_equal(result["two"], [2, 2])


def test_float16(tmp_path: Path) -> None:
    class Half(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(np.ones((4, 3), np.float16))

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float16, name="x")])
        def __call__(self, x: Any) -> dict[str, Any]:
            return {"y": tf.matmul(x, self.weight)}

    model = small.model_of("tensorflow", small.save_tensorflow(Half(), tmp_path / "net"))
    about = FRAMEWORK.describe(model)
    assert (about.precision, about.inputs[0].dtype, about.outputs[0].dtype) == ("float16", "float16", "float16")
    assert FRAMEWORK.load(model).run({"x": VECTORS})["y"].dtype == np.float16


# --- Running ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 3])
def test_run_is_what_tensorflow_gives(folder: Path, convnet: Any, kind: str, count: int) -> None:
    (result,) = FRAMEWORK.load(net(folder, kind)).run({"image": IMAGES[:count]}).values()
    assert small.relative_l2(convnet(IMAGES[:count]), result) < 1e-6


def test_run_with_several_inputs(folder: Path) -> None:
    expected = small.tensorflow_pair()(IMAGES, VECTORS)
    feeds = {"scene": IMAGES, "context": VECTORS}
    result = FRAMEWORK.load(pair(folder, "saved")).run(feeds)
    assert result.keys() == expected.keys()
    for name, array in result.items():
        assert small.relative_l2(expected[name], array) < 1e-6
    frozen = {array.ndim: array for array in FRAMEWORK.load(pair(folder, "frozen")).run(feeds).values()}
    for array in expected.values():
        assert small.relative_l2(array, frozen[array.ndim]) < 1e-6


def test_twin_inputs_are_not_swapped(tmp_path: Path) -> None:
    module = small.tensorflow_twins()
    feeds = {"first": small.vectors(3, seed=5), "second": small.vectors(3, seed=6)}
    expected = module(**feeds)
    saved = small.save_tensorflow(module, tmp_path / "twins")
    frozen = small.freeze(module.__call__.get_concrete_function(), tmp_path / "twins.pb")
    result = FRAMEWORK.load(small.model_of("tensorflow", saved)).run(feeds)
    for name, array in expected.items():
        assert small.relative_l2(array, result[name]) < 1e-6
    flat = FRAMEWORK.load(small.model_of("tensorflow", frozen)).run(feeds)
    for array, name in zip(flat.values(), sorted(expected), strict=True):  # frozen outputs have lost their names
        assert small.relative_l2(expected[name], array) < 1e-6


def test_whole_numbers(tmp_path: Path) -> None:
    network = small.keras_text()
    model = exported(network, tmp_path / "net")
    assert str(FRAMEWORK.describe(model).inputs[0]) == "text: int32[batch, 5]"
    (result,) = FRAMEWORK.load(model).run({"text": small.tokens(3)}).values()
    assert small.relative_l2(network(small.tokens(3)), result) < 1e-6
    with pytest.raises(DataError, match=r"input text: int32.*whole numbers"):
        FRAMEWORK.load(model).run({"text": small.tokens(3, dtype="float32")})


@pytest.mark.parametrize(("feeds", "named"), small.WRONG_FEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_feeds(folder: Path, kind: str, feeds: dict[str, small.Array], named: str) -> None:
    with pytest.raises(DataError, match=named):
        FRAMEWORK.load(pair(folder, kind)).run(feeds)


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_no_second_opinion(folder: Path, kind: str) -> None:
    with pytest.raises(ModelLoadError, match="no second arithmetic"):
        FRAMEWORK.load(net(folder, kind), second_opinion=True)


# --- Models that can't be used ---


def test_no_signature(folder: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"unsigned has no signature.*signatures="):
        FRAMEWORK.describe(small.model_of("tensorflow", folder / "unsigned"))


def test_unknown_rank(tmp_path: Path) -> None:
    class Shapeless(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, name="x")])
        def __call__(self, x: Any) -> dict[str, Any]:
            return {"y": x + 1.0}

    with pytest.raises(ModelLoadError, match="tensor x has no known rank"):
        FRAMEWORK.load(small.model_of("tensorflow", small.save_tensorflow(Shapeless(), tmp_path / "net")))


def test_a_graph_without_inputs(tmp_path: Path) -> None:
    graph = tf.Graph()
    with graph.as_default():
        tf.constant([1.0], name="answer")
    tf.io.write_graph(graph, str(tmp_path), "net.pb", as_text=False)
    with pytest.raises(ModelLoadError, match=r"net\.pb.*no placeholder or no result"):
        FRAMEWORK.load(small.model_of("tensorflow", tmp_path / "net.pb"))


def test_damaged_frozen_graphs_are_named(folder: Path, tmp_path: Path) -> None:
    for path in small.damaged_copies(folder / "net.pb", tmp_path):
        for action in (FRAMEWORK.describe, FRAMEWORK.load):
            with pytest.raises(ModelLoadError) as error:
                action(small.model_of("tensorflow", path))
            assert str(path) in str(error.value)
            assert "a frozen TensorFlow graph" in str(error.value) or "can't be looked through" in str(error.value)


@pytest.mark.parametrize("part", PARTS)
def test_damaged_saved_models_are_named(folder: Path, tmp_path: Path, part: str) -> None:
    copy = tmp_path / "net"
    shutil.copytree(folder / "net", copy)
    for damaged in [*small.damaged_copies(folder / "net" / part, tmp_path), None]:
        if damaged is None:
            (copy / part).unlink()
        else:
            shutil.copy(damaged, copy / part)
        with pytest.raises(ModelLoadError) as error:
            FRAMEWORK.describe(Model("tensorflow", str(copy), ""))
        assert str(copy) in str(error.value)
        assert "a SavedModel" in str(error.value) or "can't be looked through" in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_stays_as_it_is(folder: Path, kind: str) -> None:
    model, before = net(folder, kind), sorted(folder.rglob("*"))
    FRAMEWORK.describe(model)
    FRAMEWORK.load(model).run({"image": IMAGES})
    assert sha256_of(Path(model.path)) == model.sha256
    assert sorted(folder.rglob("*")) == before


# --- The size of the table that an integer input indexes ---


def test_table_sizes(tmp_path: Path) -> None:
    exported(small.keras_text(), tmp_path / "text")
    small.freeze(concrete(small.keras_text()), tmp_path / "text.pb")
    for name in ("text", "text.pb"):
        (spec,) = FRAMEWORK.describe(small.model_of("tensorflow", tmp_path / name)).inputs
        assert spec.high == small.WORDS, name


def test_table_sizes_of_several_inputs(tmp_path: Path) -> None:
    """Two tables for one input, one along its second axis in a function of its own, and an input without."""

    class Module(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = (tf.Variable(np.ones(shape, np.float32)) for shape in ((11, 3), (3, 9)))

        @tf.function
        def columns(self, kinds: Any) -> Any:
            return tf.gather(self.two, tf.expand_dims(kinds, 0), axis=1)

        @tf.function(
            input_signature=[
                tf.TensorSpec([4], dtype, name=name)
                for name, dtype in (
                    ("words", tf.int32),
                    ("kinds", tf.int64),
                    ("free", tf.int32),
                    ("real", tf.float32),
                )
            ]
        )
        def __call__(self, words: Any, kinds: Any, free: Any, real: Any) -> dict[str, Any]:
            looked_up = tf.gather(self.one, words) + tf.gather(self.one, tf.cast(kinds, tf.int32))
            return {
                "a": looked_up * real[:, None],
                "b": self.columns(kinds),
                "c": tf.gather(self.one, tf.where(free > 3, 0, free + 1)),
            }

    tf.saved_model.save(Module(), str(tmp_path / "net"))
    about = FRAMEWORK.describe(small.model_of("tensorflow", tmp_path / "net"))
    assert {spec.name: spec.high for spec in about.inputs} == {"words": 11, "kinds": 9, "free": None, "real": None}
