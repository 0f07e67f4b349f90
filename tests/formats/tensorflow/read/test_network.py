"""SavedModels and frozen graphs of TensorFlow as networks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import network_checks as checks
import numpy as np
import pytest
import small_models as small
import tensorflow as tf
from keras import layers

from conrepair.formats.networks.network import Network
from conrepair.formats.tensorflow.load.framework import TensorFlowRunnable, load_function
from conrepair.formats.tensorflow.read.network import open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import InferenceError, ModelLoadError

Opened = tuple[Network, TensorFlowRunnable, dict[str, Any]]

IMAGES = small.images(2, channels_last=True)


def opened(path: Path, feeds: dict[str, Any]) -> Opened:
    model = small.model_of("tensorflow", path)
    runnable = TensorFlowRunnable(model)
    inputs = [replace(spec, shape=feeds[spec.name].shape) for spec in runnable.inputs]
    return open_network(model, inputs), runnable, feeds


def _values(*shape: int) -> Any:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def _module(function: Callable[[Any], Any], *shape: int | None) -> Any:
    class Module(tf.Module):
        @tf.function(autograph=False, input_signature=[tf.TensorSpec(shape, tf.float32, name="x")])
        def __call__(self, x: Any) -> Any:
            return function(x)

    return Module()


def _exported(function: Callable[[Any], Any], feed: Any, path: Path) -> Opened:
    keras.utils.set_random_seed(21)
    given = keras.Input(feed.shape[1:], dtype=feed.dtype.name, name="x")
    network = small.keras_randomized(keras.Model(given, function(given)))
    return opened(small.tensorflow_of(network, path), {"x": feed})


def _recurrent(x: Any) -> Any:
    x = layers.Bidirectional(layers.GRU(4, return_sequences=True))(layers.LSTM(5, return_sequences=True)(x))
    return layers.Dense(3)(layers.Flatten()(x))


def _encoder(x: Any) -> Any:
    x = layers.Embedding(small.WORDS, 6, mask_zero=True)(x)
    x = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(2, 3)(x, x)]))
    return layers.GlobalAveragePooling1D()(layers.Dense(5, activation="gelu")(x))


def _generator(x: Any) -> Any:
    x = layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="silu")(x)
    x = layers.Conv2DTranspose(6, 2, strides=3)(layers.ZeroPadding2D(1)(x))
    x = layers.UpSampling2D(2, interpolation="bilinear")(layers.MaxPooling2D(3, 2, "same")(x))
    return layers.Concatenate()([x, layers.LeakyReLU()(x), layers.Conv2D(3, 3, padding="same", groups=3)(x)])


def _operators(x: Any) -> Any:
    """What Keras doesn't write."""
    constant = _values(3, 7)
    y = tf.pad(tf.raw_ops.FusedBatchNormV3(
        x=x, scale=[1.0, 2.0, 3.0], offset=[0.1, 0.2, 0.3], mean=[0.3, 0.2, 0.1], variance=[1.0, 0.5, 2.0],
        epsilon=0.01, is_training=False,
    )[0], [[0, 0], [1, 2], [0, 1], [0, 0]], "REFLECT")  # fmt: skip
    y = tf.image.resize(y[:, 1:, ::2, ::-1], (9, 8), "nearest")
    y = tf.nn.relu6(tf.nn.local_response_normalization(y, 1)) + 0.5 - y[:, :1]
    y = tf.tensordot(tf.reduce_max(y, 2), constant, 1)
    one, two, three = tf.split(y, [2, 1, 4], -1)
    y = tf.concat([tf.tile(one, [1, 1, 2]), two, tf.nn.elu(three), tf.ones_like(two)], -1)
    y = tf.where(y > 0.2, tf.math.rsqrt(tf.abs(y) + 1.0), 2.0 / (y * y + 1.0))
    return {
        "sum": tf.math.cumsum(tf.stack([y, tf.nn.selu(y)], 1), 2, exclusive=True),
        "best": tf.argmax(y, -1),
        "picked": tf.gather(tf.transpose(y, [0, 2, 1]), [2, 0], axis=-1),
        "product": tf.matmul(y, y, transpose_b=True),
    }


def _chosen(x: Any) -> Any:
    """Control flow on values, and sizes that depend on them."""
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x), lambda: tf.cos(x))
    (y,) = tf.while_loop(lambda y: tf.reduce_max(y) < 4.0, lambda y: [y * 2.0 + 0.1], [y])
    return {"picked": 2.0 * tf.boolean_mask(y, y > 1.0), "whole": y - 1.0}


def _calling(x: Any) -> Any:
    @tf.function(autograph=False)
    def inner(y: Any) -> Any:
        return tf.nn.relu(y, name="same") * 3.0, y

    first, kept = inner(x)
    return {"a": inner(first - 1.0)[0], "b": kept + 1.0}


def _pair(path: Path) -> Opened:
    return opened(small.save_tensorflow(small.tensorflow_pair(), path), {"scene": IMAGES, "context": small.vectors()})


def _frozen(path: Path) -> Opened:
    model = small.model_of("tensorflow", small.tensorflow_of(small.keras_convnet(), path / "saved"))
    function, _owner = load_function(model)
    return opened(small.freeze(function, path / "net.pb"), {"image": IMAGES})


CASES: dict[str, Callable[[Path], Opened]] = {
    "convnet": lambda path: opened(small.tensorflow_of(small.keras_convnet(), path), {"image": IMAGES}),
    "pair": _pair,
    "twins": lambda path: opened(
        small.save_tensorflow(small.tensorflow_twins(), path),
        {"second": small.vectors(), "first": small.vectors(seed=4)},
    ),
    "text": lambda path: opened(small.tensorflow_of(small.keras_text(), path), {"text": small.tokens(dtype="int32")}),
    "recurrent": lambda path: _exported(_recurrent, _values(2, 5, 4), path),
    "encoder": lambda path: _exported(_encoder, small.tokens(dtype="int32"), path),
    "generator": lambda path: _exported(_generator, IMAGES, path),
    "operators": lambda path: opened(
        small.save_tensorflow(_module(_operators, None, small.HEIGHT, small.WIDTH, 3), path), {"x": IMAGES}
    ),
    "calling": lambda path: opened(small.save_tensorflow(_module(_calling, None, 4), path), {"x": _values(2, 4)}),
    "frozen": _frozen,
    "session": lambda path: opened(small.freeze_session(path / "net.pb"), {"image": IMAGES}),
}


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Opened]:
    return functools.cache(lambda name: CASES[name](tmp_path_factory.mktemp("tensorflow")))


@pytest.fixture(scope="module")
def checked(networks: Callable[[str], Opened]) -> Callable[[str], set[str]]:
    """Which operators of a network compute what the vocabulary says."""
    return functools.cache(lambda name: checks.check_functions(networks(name)[0], networks(name)[2], 1e-4))


@pytest.fixture(scope="module", params=list(CASES))
def network(request: pytest.FixtureRequest, networks: Callable[[str], Opened]) -> Opened:
    return networks(request.param)


# --- What every network must do ---


def test_captures_are_what_tensorflow_gives(network: Opened) -> None:
    checks.check_outputs(*network)


def test_every_piece_alone_gives_the_same(network: Opened) -> None:
    checks.check_cuts(network[0], network[2])


def test_readers_get_what_is_fed(network: Opened) -> None:
    checks.check_readers_get_what_is_fed(network[0], network[2])


@pytest.mark.parametrize("seed", range(5))
def test_random_cuts(network: Opened, seed: int) -> None:
    checks.check_random_cuts(network[0], network[2], seed)


def test_vocabulary(network: Opened) -> None:
    checks.check_vocabulary(network[0])


def test_every_size_is_known(network: Opened) -> None:
    tensors = network[0].graph.tensors.values()
    assert [tensor.name for tensor in tensors if tensor.observable and tensor.shape is None] == []


@pytest.mark.parametrize("name", list(CASES))
def test_nodes_compute_what_the_vocabulary_says(name: str, checked: Callable[[str], set[str]]) -> None:
    assert checked(name)


def test_the_vocabulary_covers_what_is_usual(
    networks: Callable[[str], Opened], checked: Callable[[str], set[str]]
) -> None:
    right = set().union(*map(checked, CASES))
    seen = {node.op for name in CASES for node in networks(name)[0].graph.nodes}
    loops = {"While", "TensorListFromTensor", "TensorListStack"}
    own = {"StridedSlice", "Erfc", "NotEqual", "OnesLike", "ReverseV2", "SquaredDifference", "ZerosLike", "IdentityN"}
    assert seen - right <= loops | own
    assert {"Conv", "ConvTranspose", "BatchNormalization", "MatMul", "Gather", "Resize", "Where"} <= right


# --- What TensorFlow writes ---


def test_names_and_parameters_are_those_of_the_file(tmp_path: Path) -> None:
    network, runnable, _ = CASES["convnet"](tmp_path)
    nodes = {node.name: node for node in network.graph.nodes}
    conv = next(node for name, node in nodes.items() if name.endswith("/convolution"))
    assert (conv.op, conv.native, conv.layer) == ("Conv", "Conv2D", conv.name)
    weights = {item.name for node in nodes.values() for item in node.parameters.values()}
    variables = {variable.name.removesuffix(":0") for variable in runnable.function.graph.variables}
    assert {name for name in variables if name.endswith(("kernel", "bias"))} <= weights
    assert network.output_names == {"output_0": "Identity"}
    assert not {node.op for node in nodes.values()} & {"Shape", "TensorFlowShape", "Pack", "StridedSlice"}


def test_functions_that_are_called_twice_are_there_twice(tmp_path: Path) -> None:
    network, _, _ = CASES["calling"](tmp_path)
    ops = [node.op for node in network.graph.nodes]
    assert (ops.count("Relu"), ops.count("Mul")) == (2, 2)
    assert not [node.native for node in network.graph.nodes if "Call" in node.native]


def test_control_flow_is_one_node_and_sizes_that_depend_on_values_are_unknown(tmp_path: Path) -> None:
    feed = _values(2, 4)
    network, runnable, feeds = opened(small.save_tensorflow(_module(_chosen, None, 4), tmp_path / "net"), {"x": feed})
    natives = [node.native for node in network.graph.nodes]
    assert sum(name.endswith("If") for name in natives) == sum(name.endswith("While") for name in natives) == 1
    picked = network.graph.tensors[network.output_names["picked"]]
    whole = network.graph.tensors[network.output_names["whole"]]
    assert (picked.shape, whole.shape) == (None, (2, 4))
    for sign in (1, -1):
        checks.check_outputs(network, runnable, {"x": np.float32(sign) * np.abs(feed)})
    checks.check_cuts(network, feeds)


def test_what_cannot_be_cut(tmp_path: Path) -> None:
    network, _, feeds = CASES["recurrent"](tmp_path)
    hidden = next(name for name, tensor in network.graph.tensors.items() if not tensor.observable)
    with pytest.raises(ValueError, match="observed"):
        network.segment(["x"], [hidden])
    with pytest.raises(ValueError, match="needed and not fed"):
        network.segment([], network.graph.outputs)
    with pytest.raises(ValueError, match="is an input"):
        network.segment(["x"], ["x"])
    with pytest.raises(InferenceError, match="values are"):
        network.segment(["x"], network.graph.outputs).run({"x": feeds["x"][:1]})


def test_there_is_no_second_opinion(tmp_path: Path) -> None:
    path = small.tensorflow_of(small.keras_convnet(), tmp_path / "net")
    model = small.model_of("tensorflow", path)
    inputs = [replace(spec, shape=(2, *spec.shape[1:])) for spec in TensorFlowRunnable(model).inputs]
    network = open_network(model, inputs)
    with pytest.raises(ModelLoadError, match="one arithmetic"):
        network.second_opinion()


def test_loops_of_tensorflow_1_are_refused(tmp_path: Path) -> None:
    one = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        one.disable_control_flow_v2()
        try:
            given = one.placeholder(tf.float32, [None, 4], name="x")
            result = one.while_loop(lambda y: tf.reduce_max(y) < 4.0, lambda y: [y * 2.0 + 0.1], [given])
            tf.identity(result, name="result")
        finally:
            one.enable_control_flow_v2()
    (tmp_path / "net.pb").write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(ModelLoadError, match="to ONNX"):
        open_network(small.model_of("tensorflow", tmp_path / "net.pb"), [TensorSpec("x", (2, 4), "float32")])


def test_pieces_share_the_constants_of_a_frozen_graph(tmp_path: Path) -> None:
    """A piece has none of the large numbers in it."""
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(512, 512)).astype(np.float32)
    module = _module(
        lambda x: tf.matmul(tf.nn.relu(tf.matmul(x, tf.constant(weights))), tf.constant(weights.T)), None, 512
    )
    small.freeze(module.__call__.get_concrete_function(), tmp_path / "net.pb")
    network, runnable, feeds = opened(tmp_path / "net.pb", {"x": _values(2, 512)})
    checks.check_outputs(network, runnable, feeds)
    segment = network.segment(["x"], network.graph.outputs)
    assert segment._function.graph.as_graph_def().ByteSize() < 10_000
    matrices = [node.parameters["weight"].numpy() for node in network.graph.nodes if node.op == "MatMul"]
    np.testing.assert_array_equal(matrices[0], weights)
    np.testing.assert_array_equal(matrices[1], weights.T)


class _Table(tf.Module):
    """Texts that are looked up."""

    def __init__(self, words: list[str]) -> None:
        super().__init__()
        values = tf.lookup.KeyValueTensorInitializer(tf.constant(words), tf.constant([1.0, 2.0, 3.0]))
        self.table = tf.lookup.StaticHashTable(values, -1.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.string, name="text")])
    def __call__(self, text: Any) -> dict[str, Any]:
        return {"y": 2.0 * self.table.lookup(text)}


def test_texts_can_be_fed(tmp_path: Path) -> None:
    module = _Table(["red", "green", "blue"])
    tf.saved_model.save(module, str(tmp_path / "a"), signatures=module.__call__)
    texts = np.array([["red", "blue"], ["green", "other"]])
    network, runnable, _ = opened(tmp_path / "a", {"text": texts})
    [text] = network.graph.inputs
    [wanted] = network.graph.outputs
    found = network.segment([text], [wanted]).run({text: texts})[wanted]
    np.testing.assert_array_equal(found, [[2.0, 6.0], [4.0, -2.0]])
    np.testing.assert_array_equal(runnable.run({"text": texts})["y"], found)
