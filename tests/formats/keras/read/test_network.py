"""Keras models as networks."""

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
from keras import layers, ops

from conrepair.formats.keras.load.framework import KerasRunnable
from conrepair.formats.keras.read.network import KerasNetwork, open_network
from conrepair.formats.networks.network import Network
from conrepair.ground.runtime.errors import InferenceError, ModelLoadError

Case = tuple[Any, dict[str, Any]]


def _pictures(count: int = 2) -> dict[str, Any]:
    return {"image": small.images(count, channels_last=True)}


def _values(*shape: int) -> Any:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def _of(function: Callable[[Any], Any], feed: Any) -> Case:
    """A model of one input, its weights drawn anew."""
    keras.utils.set_random_seed(21)
    given = keras.Input(feed.shape[1:], dtype=feed.dtype.name, name="x")
    return small.keras_randomized(keras.Model(given, function(given))), {"x": feed}


def _residual(x: Any) -> Any:
    """Everything with a window, and all that moves pixels."""
    x = layers.ZeroPadding2D(((0, 1), (2, 0)))(x)
    x = layers.SeparableConv2D(7, 3, strides=2, padding="same", depth_multiplier=2, activation="relu6")(x)
    y = layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="silu")(x)
    y = layers.Conv2DTranspose(7, 2, strides=3)(y)
    y = layers.Cropping2D(((1, 0), (0, 2)))(y)
    y = layers.Conv2D(4, 3, dilation_rate=2, groups=1, activation=layers.LeakyReLU(0.3))(y)
    y = layers.GroupNormalization(2)(y)
    y = layers.UpSampling2D(2, interpolation="bilinear")(layers.AveragePooling2D(3, 2, "same")(y))
    y = layers.UpSampling2D((1, 2))(layers.MaxPooling2D(3, 2, "same")(y))
    shared = layers.Conv2D(4, 1, activation="gelu")
    y = layers.Add()([shared(y), shared(shared(y)), layers.PReLU(shared_axes=[1, 2])(y)])
    y = layers.Concatenate()([y, layers.Dense(3, activation="elu")(y)])
    return [
        layers.GlobalMaxPooling2D()(y),
        layers.GlobalAveragePooling2D(keepdims=True)(layers.Permute((2, 1, 3))(y)),
    ]


def _encoder(x: Any) -> Any:
    x = layers.Embedding(small.WORDS, 6)(x)
    y = layers.LayerNormalization()(layers.Add()([x, layers.MultiHeadAttention(2, 3, value_dim=4)(x, x)]))
    y = layers.EinsumDense("abc,cd->abd", (small.TOKENS, 8), bias_axes="d", activation="gelu")(y)
    y = layers.Dense(5, activation="selu")(layers.Dropout(0.3)(y))
    return layers.Dense(3, activation="softmax")(layers.Flatten()(y))


def _recurrent(x: Any) -> Any:
    x = layers.LSTM(5, return_sequences=True)(x)
    x = layers.Bidirectional(layers.GRU(4, return_sequences=True))(x)
    x = layers.Bidirectional(layers.LSTM(3))(layers.SimpleRNN(4, return_sequences=True)(x))
    return layers.Dense(3, activation="hard_sigmoid")(layers.UnitNormalization()(x))


def _reset_before(x: Any) -> Any:
    return layers.LSTM(2, go_backwards=True)(layers.GRU(3, reset_after=False, return_sequences=True)(x))


def _masked(x: Any) -> Any:
    """A mask that goes through layers which hand it on, into some that read it."""
    x = layers.Embedding(small.WORDS, 6, mask_zero=True)(x)
    x = layers.Dropout(0.5)(layers.LSTM(5, return_sequences=True)(x))
    x = layers.LayerNormalization()(layers.MultiHeadAttention(2, 3)(x, x))
    return layers.GlobalAveragePooling1D()(x)


def _functions(x: Any) -> Any:
    y = ops.sin(x) * 2.0 + ops.arctan(x) + ops.mean(x, axis=1, keepdims=True)
    y = ops.matmul(ops.transpose(y, (0, 2, 1)), np.linspace(-1, 1, 12).reshape(4, 3).astype(np.float32))
    y = ops.reshape(ops.softmax(y, axis=-1), (-1, 15))
    first, second = ops.split(y[:, 1:9], 2, axis=1)
    y = ops.stack([first, second], axis=1)
    return [
        ops.where(y > 0.1, y, 0.0),
        ops.argmax(y, axis=-1),
        1.0 / (y + 1.0),
        y[:, 0, None, ::2],
        ops.pad(ops.clip(y, 0.0, 0.4), ((0, 0), (1, 0), (0, 2))),
        ops.einsum("bij,bkj->bik", y, y),
        ops.gelu(ops.expand_dims(y, -1), approximate=True),
    ]


def _mlp(x: Any) -> Any:
    for name in (
        "relu",
        "tanh",
        "sigmoid",
        "softplus",
        "softsign",
        "mish",
        "hard_silu",
        "leaky_relu",
        "exponential",
        "soft_shrink",
        "celu",
    ):
        x = layers.Dense(5, activation=name)(x)
    x = layers.ELU(0.7)(layers.ReLU(negative_slope=0.1)(layers.RMSNormalization()(x)))
    x = ops.celu(ops.hard_shrink(ops.soft_shrink(x, 0.1), 0.2), 0.7)
    x = layers.Activation("log_softmax")(layers.ReLU(threshold=0.2)(x))
    return layers.Rescaling(2.0, 1.0)(x)


def _nested_twice(x: Any) -> Any:
    given = keras.Input((4,))
    body = keras.Sequential(
        [layers.Dense(4, activation="tanh", name="dense"), layers.BatchNormalization()], name="in"
    )
    inner = keras.Model(given, [body(given), layers.Dense(4, name="side")(given)], name="body")
    one, two = inner(x)
    return [layers.Subtract()([one, two]), *inner(two)]


def _texts() -> Any:
    values = small.tokens(dtype="int32")
    values[1, 3:] = 0
    return values


CASES: dict[str, Callable[[], Case]] = {
    "convnet": lambda: (small.keras_convnet(), _pictures()),
    "nested": lambda: (small.keras_convnet(nested=True), _pictures(1)),
    "pair": lambda: (
        small.keras_pair(as_dict=True),
        {"scene": small.images(2, channels_last=True), "context": small.vectors()},
    ),
    "twins": lambda: (small.keras_twins(), {"second": small.vectors(), "first": small.vectors(seed=4)}),
    "text": lambda: (small.keras_text(), {"text": small.tokens(dtype="int32")}),
    "residual": lambda: _of(_residual, small.images(2, channels_last=True)),
    "encoder": lambda: _of(_encoder, _texts()),
    "recurrent": lambda: _of(_recurrent, _values(2, 5, 4)),
    "reset before": lambda: _of(_reset_before, _values(2, 5, 4)),
    "masked": lambda: _of(_masked, _texts()),
    "functions": lambda: _of(_functions, _values(2, 4, 5)),
    "mlp": lambda: _of(_mlp, _values(3, 4)),
    "nested twice": lambda: _of(_nested_twice, _values(3, 4)),
    "series": lambda: _of(
        lambda x: layers.Conv1D(4, 3, padding="causal", dilation_rate=2)(layers.DepthwiseConv1D(3, strides=2)(x)),
        _values(2, 15, 3),
    ),
}


def opened(case: Case, path: Path) -> tuple[Network, KerasRunnable, dict[str, Any]]:
    network, feeds = case
    network.save(path)
    model = small.model_of("keras", path)
    runnable = KerasRunnable(model)
    inputs = [replace(spec, shape=feeds[spec.name].shape) for spec in runnable.inputs]
    return open_network(model, inputs), runnable, feeds


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    return functools.cache(lambda name: opened(CASES[name](), tmp_path_factory.mktemp("keras") / "net.keras"))


@pytest.fixture(scope="module")
def checked(networks: Callable[[str], Any]) -> Callable[[str], set[str]]:
    """Which operators of a network compute what the vocabulary says."""
    return functools.cache(lambda name: checks.check_functions(networks(name)[0], networks(name)[2]))


@pytest.fixture(scope="module", params=list(CASES))
def network(request: pytest.FixtureRequest, networks: Callable[[str], Any]) -> Any:
    return networks(request.param)


# --- What every network must do ---


def test_captures_are_what_keras_gives(network: Any) -> None:
    checks.check_outputs(*network)


def test_every_piece_alone_gives_the_same(network: Any) -> None:
    checks.check_cuts(network[0], network[2])


def test_readers_get_what_is_fed(network: Any) -> None:
    checks.check_readers_get_what_is_fed(network[0], network[2])


@pytest.mark.parametrize("seed", range(5))
def test_random_cuts(network: Any, seed: int) -> None:
    checks.check_random_cuts(network[0], network[2], seed)


def test_vocabulary(network: Any) -> None:
    checks.check_vocabulary(network[0])


@pytest.mark.parametrize("name", list(CASES))
def test_nodes_compute_what_the_vocabulary_says(
    name: str, networks: Callable[[str], Any], checked: Callable[[str], set[str]]
) -> None:
    assert checked(name) or {node.op for node in networks(name)[0].graph.nodes} <= {"Rescaling"}


def test_the_vocabulary_covers_what_is_usual(
    networks: Callable[[str], Any], checked: Callable[[str], set[str]]
) -> None:
    right = set().union(*map(checked, CASES))
    seen = {node.op for name in CASES for node in networks(name)[0].graph.nodes}
    left = {"GlobalAveragePooling1D", "NotEqual", "Rescaling", "KerasLSTM"}  # with a mask, or not in it
    assert seen - right <= left
    assert {"Conv", "ConvTranspose", "LSTM", "GRU", "RNN", "Attention", "Gather", "Resize", "PRelu"} <= right
    assert "KerasCelu" not in seen


# --- What Keras makes of layers ---


def _layer(function: Callable[[Any], Any], feed: Any, tmp_path: Path) -> list[Any]:
    return list(opened(_of(function, feed), tmp_path / "net.keras")[0].graph.nodes)


def test_names_are_those_of_the_file(tmp_path: Path) -> None:
    network, runnable, _ = opened(_of(_nested_twice, _values(3, 4)), tmp_path / "net.keras")
    names = [node.name for node in network.graph.nodes]
    assert {"body/in/dense", "body/in/dense#2", "body/in/dense/tanh", "body/side", "body/side#2"} <= set(names)
    assert {node.layer for node in network.graph.nodes if "#2" in node.name} <= {
        "body/in/dense", "body/side", *(name for name in names if "batch" in name),
    }  # fmt: skip
    weights = {name for node in network.graph.nodes for name in (item.name for item in node.parameters.values())}
    assert {variable.path for variable in runnable.network.weights} == weights
    assert network.input_names == {"x": "x"}
    assert list(network.output_names) == [spec.name for spec in runnable.outputs]


def test_an_activation_is_a_node_behind_a_tensor_that_cannot_be_observed(tmp_path: Path) -> None:
    network, _, feeds = opened(
        _of(lambda x: layers.Conv2D(4, 3, activation="relu", name="conv")(x), small.images(2, channels_last=True)),
        tmp_path / "net.keras",
    )
    conv, relu = network.graph.nodes
    assert (conv.name, conv.layer, conv.op, relu.name, relu.layer, relu.op) == (
        "conv", "conv", "Conv", "conv/relu", "conv", "Relu",
    )  # fmt: skip
    between = network.graph.tensors[conv.outputs[0]]
    assert (between.observable, between.shape) == (False, (2, 10, 8, 4))
    with pytest.raises(ValueError, match="observed"):
        network.segment(["x"], [between.name])
    with pytest.raises(ValueError, match="observed"):
        network.segment(["x", between.name], ["conv"])
    with pytest.raises(ValueError, match="needed and not fed"):
        network.segment([], ["conv"])
    with pytest.raises(ValueError, match="is an input"):
        network.segment(["x"], ["x"])
    with pytest.raises(InferenceError):
        network.segment(["x"], ["conv"]).run({"x": feeds["x"][:, 1:]})


def test_masks_are_tensors_of_their_own(tmp_path: Path) -> None:
    network, _, feeds = opened(_of(_masked, _texts()), tmp_path / "net.keras")
    attention = next(node for node in network.graph.nodes if node.op == "Attention")
    assert len(set(attention.inputs)) == 2
    mask = attention.inputs[-1]
    assert (network.graph.tensors[mask].dtype, network.graph.tensors[mask].shape) == ("bool", (2, small.TOKENS))
    values = checks.captured(network, feeds)
    np.testing.assert_array_equal(values[mask], feeds["x"] != 0)
    segment = network.segment([*attention.inputs], [*attention.outputs])
    assert set(segment.needs) == set(attention.inputs)
    shown = segment.run({**values, mask: np.ones_like(values[mask])})[attention.outputs[0]]
    assert checks.distance(values[attention.outputs[0]], shown) > 1e-3


def test_layers_that_the_vocabulary_has_no_word_for_stay_whole(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        x = layers.TimeDistributed(layers.Dense(4))(x)
        x = layers.LSTM(3, go_backwards=True, return_sequences=True)(x)
        x = layers.ReLU(6.0, negative_slope=0.1)(layers.Rescaling(2.0)(x))
        return layers.Average()([x, ops.flip(x, axis=1)])

    network, runnable, feeds = opened(_of(function, _values(2, 5, 4)), tmp_path / "net.keras")
    nodes = {node.native: node for node in network.graph.nodes}
    kinds = [node.op for node in network.graph.nodes]
    assert kinds == ["TimeDistributed", "KerasLSTM", "Mul", "ReLU", "Flip", "Average"]
    assert set(nodes["TimeDistributed"].parameters) >= {"dense/kernel", "dense/bias"} or nodes[
        "TimeDistributed"
    ].parameters.keys() == {"kernel", "bias"}
    assert nodes["Rescaling"].parameters["operand"].numpy() == 2
    assert nodes["ReLU"].attributes["max_value"] == 6
    checks.check_outputs(network, runnable, feeds)


def test_second_opinion_is_the_same_graph_in_float64(tmp_path: Path) -> None:
    for number, name in enumerate(("residual", "functions", "masked", "nested twice")):
        case = CASES[name]()
        network, _, feeds = opened(case, tmp_path / f"{number}.keras")
        second = network.second_opinion()
        assert network.second_opinion() is second, "which costs as much as opening it"
        assert [(node.name, node.inputs, node.outputs) for node in second.graph.nodes] == [
            (node.name, node.inputs, node.outputs) for node in network.graph.nodes
        ]
        assert {tensor.dtype for tensor in second.graph.tensors.values()} <= {"float64", "int32", "bool", "int64"}
        values = checks.captured(network, feeds)
        cuts = [*network.graph.inputs, *checks.observable(network, real=True)]
        exact = second.segment(cuts, checks.observable(second)).run(values)
        distances = [checks.distance(values[name], array) for name, array in exact.items()]
        assert 0 < max(distances) < 1e-5


def test_mixed_precision(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        x = layers.Conv2D(4, 3, dtype="mixed_bfloat16", name="half")(x)
        return layers.Dense(3)(layers.Flatten()(x))

    network, runnable, feeds = opened(_of(function, small.images(2, channels_last=True)), tmp_path / "net.keras")
    assert network.graph.tensors["half"].dtype == "bfloat16"
    checks.check_outputs(network, runnable, feeds)
    checks.check_cuts(network, feeds)


def test_subclassed_models_have_no_graph(tmp_path: Path) -> None:
    network, feeds = CASES["mlp"]()

    @keras.saving.register_keras_serializable("tests")
    class Own(keras.Model):
        def call(self, inputs: Any) -> Any:
            return 2 * super().call(inputs)

    own = Own(network.inputs, network.outputs)
    with pytest.raises(ModelLoadError, match="by way of ONNX"):
        opened((own, feeds), tmp_path / "net.keras")


def test_pieces_share_the_weights(tmp_path: Path) -> None:
    network, _, feeds = opened(CASES["residual"](), tmp_path / "net.keras")
    assert isinstance(network, KerasNetwork)
    before = checks.captured(network, feeds)["x"]
    segment = network.segment(["x"], checks.observable(network))
    results = [segment.run({"x": before})]
    conv = next(node for node in network.graph.nodes if node.layer.startswith("separable"))
    variable = next(item for item in network.runnable.network.weights if item.path == conv.parameters["weight"].name)
    variable.assign(variable * 2)
    results.append(segment.run({"x": before}))
    assert checks.distance(*(result[conv.layer] for result in results)) > 1e-3


@pytest.mark.slow
def test_a_usual_network_is_cut_anywhere(tmp_path: Path) -> None:
    given = keras.Input((96, 96, 3), name="x")
    body = keras.applications.MobileNetV2(weights=None, input_tensor=given)
    feeds = {"x": np.random.default_rng(0).uniform(size=(4, 96, 96, 3)).astype(np.float32)}
    network, runnable, _ = opened((keras.Model(given, body.output), feeds), tmp_path / "net.keras")
    checks.check_outputs(network, runnable, feeds)
    checks.check_cuts(network, feeds)
