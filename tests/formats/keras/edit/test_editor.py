"""Edits of Keras models: one call of a layer that has several, words for pads, operators that are asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from benchmarks.faults.steps import insert
from conrepair.formats.editing.editor import Editor, NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.model import Model
from conrepair.ground.graph.layer_graph import Node
from conrepair.ground.runtime.files.whole import sha256_of

Array = Any
POOLS: dict[str, Callable[..., Any]] = {
    **{kind: functools.partial(getattr(layers, kind), 2) for kind in ("MaxPooling2D", "AveragePooling2D")},
    **{kind: getattr(layers, kind) for kind in ("GlobalMaxPooling2D", "GlobalAveragePooling2D")},
}


def opened(network: keras.Model, folder: Path) -> Editor:
    network.save(folder / "wrong.keras")
    return open_editor(Model("keras", str(folder / "wrong.keras"), sha256_of(folder / "wrong.keras")))


def written(editor: Editor, folder: Path) -> keras.Model:
    (folder / "out").mkdir()
    return keras.models.load_model(editor.save(folder / "out", "repaired").path)


def node_of(editor: Editor, name: str) -> Node:
    return next(node for node in editor.graph.nodes if node.name == name)


def shared() -> keras.Model:
    """`act` and `dense` are called twice each."""
    keras.utils.set_random_seed(3)
    vector = keras.Input((4,), name="vector")
    act, dense = layers.ReLU(name="act"), layers.Dense(4, activation="tanh", bias_initializer="normal", name="dense")
    first = act(dense(vector))
    return keras.Model(vector, act(dense(layers.Rescaling(-1.5, name="turned")(first))))


def numbers(*shape: int) -> Array:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def by_hand(network: keras.Model, given: Array, acts: Any, dense: Any = np.tanh) -> Array:
    """What the shared network computes, with functions for both calls of `act` and the last one of `dense`."""
    kernel, bias = network.get_layer("dense").get_weights()
    first = acts[0](np.tanh(given @ kernel + bias))
    return acts[1](dense(-1.5 * first @ kernel + bias))


def relu(array: Array) -> Array:
    return np.maximum(array, 0)


def same(array: Array) -> Array:
    return array


def leaky(array: Array) -> Array:
    return np.where(array > 0, array, 0.3 * array)


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize(
    ("change", "function"),
    [
        (lambda editor, node: editor.remove(node), same),
        (lambda editor, node: editor.set_operator(node, "LeakyRelu", {"alpha": 0.3}), leaky),
        (lambda editor, node: editor.set_attributes(node, {"alpha": 0.3}), leaky),
        (
            lambda editor, node: editor.graft(
                node.outputs[0], [Operation("LeakyRelu", node.inputs, {"alpha": 0.3})], "leaky"
            ),
            leaky,
        ),
        (
            lambda editor, node: editor.graft(
                node.inputs[0], [Operation("Tanh", (node.inputs[0],))], "bent", readers=[node]
            ),
            lambda array: relu(np.tanh(array)),
        ),
    ],
    ids=["remove", "set_operator", "set_attributes", "graft", "graft for one reader"],
)
def test_a_change_of_one_call_leaves_the_other(
    second: bool, change: Callable[[Editor, Node], None], function: Callable[[Array], Array], tmp_path: Path
) -> None:
    network = shared()
    editor = opened(network, tmp_path)
    change(editor, node_of(editor, "act#2" if second else "act"))
    given, acts = numbers(5, 4), [relu, relu]
    acts[second] = function
    result = written(editor, tmp_path).predict(given, verbose=0)
    np.testing.assert_allclose(result, by_hand(network, given, acts), atol=1e-6)


def test_the_activation_of_one_call_is_another(tmp_path: Path) -> None:
    network = shared()
    editor = opened(network, tmp_path)
    editor.set_operator(node_of(editor, "dense#2/tanh"), "Relu", {})
    given = numbers(5, 4)
    result = written(editor, tmp_path).predict(given, verbose=0)
    np.testing.assert_allclose(result, by_hand(network, given, [relu, relu], relu), atol=1e-6)


def test_calls_that_want_the_same_share_it_and_weights_are_those_of_all(tmp_path: Path) -> None:
    network = shared()
    editor = opened(network, tmp_path)
    for name in ("act", "act#2"):
        editor.set_operator(node_of(editor, name), "LeakyRelu", {"alpha": 0.3})
    kernel = numbers(4, 4)
    editor.set_parameter(node_of(editor, "dense#2"), "weight", kernel)
    network.get_layer("dense").kernel.assign(kernel)
    given, repaired = numbers(5, 4), written(editor, tmp_path)
    expected = by_hand(network, given, [leaky, leaky])
    np.testing.assert_allclose(repaired.predict(given, verbose=0), expected, atol=1e-6)
    assert sum(isinstance(layer, layers.LeakyReLU) for layer in repaired.layers) == 1


def test_a_call_in_a_model_that_is_called_twice_is_refused(tmp_path: Path) -> None:
    inner = keras.Sequential([layers.Dense(4, name="dense"), layers.ReLU(name="act")], name="body")
    vector = keras.Input((4,), name="vector")
    editor = opened(keras.Model(vector, inner(inner(vector))), tmp_path)
    for name in ("body/act", "body/act#2"):
        with pytest.raises(NotEditableError, match="in a model that is called several times"):
            editor.remove(node_of(editor, name))
        with pytest.raises(NotEditableError, match="in a model that is called several times"):
            insert(editor, name, [("Tanh", {}, [])], "bent")


@pytest.mark.parametrize(
    ("said", "changes", "wanted"),
    [
        ("same", {"pads": (2, 0)}, "causal"),
        ("causal", {"pads": (1, 1)}, "same"),
        ("causal", {"pads": (0, 0)}, "valid"),
        ("same", {"pads": (2, 2), "dilations": (2,)}, "same"),
        ("causal", {"pads": (4, 0), "dilations": (2,)}, "causal"),
    ],
)
def test_pads_of_a_signal_are_seen_and_said(said: str, changes: Any, wanted: str, tmp_path: Path) -> None:
    """They were zeros of four axes to the editor, whatever they were, and nothing could change them."""
    keras.utils.set_random_seed(4)
    rows = keras.Input((9, 3), name="rows")
    editor = opened(keras.Model(rows, layers.Conv1D(2, 3, padding=said, name="conv")(rows)), tmp_path)
    node = node_of(editor, "conv")
    assert node.attributes["pads"] == {"same": (1, 1), "causal": (2, 0)}[said]
    assert (node.attributes["kernel_shape"], node.attributes["strides"], node.attributes["group"]) == ((3,), (1,), 1)
    editor.set_attributes(node, changes)
    layer = written(editor, tmp_path).get_layer("conv")
    assert layer.padding == wanted
    assert layer.dilation_rate == changes.get("dilations", (1,))


def test_pads_that_no_word_says_are_refused(tmp_path: Path) -> None:
    rows = keras.Input((9, 3), name="rows")
    editor = opened(keras.Model(rows, layers.Conv1D(2, 3, padding="same", name="conv")(rows)), tmp_path)
    with pytest.raises(NotEditableError, match=r"no word for pads of \[0, 2\]"):
        editor.set_attributes(node_of(editor, "conv"), {"pads": (0, 2)})


@pytest.mark.parametrize(
    ("kind", "asked", "given"),
    [
        ("MaxPooling2D", "AveragePool", "AveragePooling2D"),
        ("MaxPooling2D", "MaxPool", "MaxPooling2D"),
        ("AveragePooling2D", "MaxPool", "MaxPooling2D"),
        ("GlobalMaxPooling2D", "ReduceMean", "GlobalAveragePooling2D"),
        ("GlobalAveragePooling2D", "ReduceMean", "GlobalAveragePooling2D"),
        ("MaxPooling2D", "ReduceMean", None),
        ("GlobalMaxPooling2D", "AveragePool", None),
        ("GlobalAveragePooling2D", "ReduceSum", None),
        ("MaxPooling2D", "Relu", None),
    ],
)
def test_a_pooling_becomes_the_one_that_is_asked_for(
    kind: str, asked: str, given: str | None, tmp_path: Path
) -> None:
    """It became the other one of two, whatever was asked for."""
    picture = keras.Input((6, 6, 2), name="picture")
    editor = opened(keras.Model(picture, POOLS[kind](name="pool")(picture)), tmp_path)
    node = node_of(editor, "pool")
    if given is None:
        with pytest.raises(NotEditableError, match=f"{kind} can't become {asked}"):
            editor.set_operator(node, asked, {})
    else:
        editor.set_operator(node, asked, {})
        assert type(written(editor, tmp_path).get_layer("pool")).__name__ == given


@pytest.mark.parametrize("alpha", [0.2, 0.3])
def test_an_activation_has_the_numbers_that_are_asked_for(alpha: float, tmp_path: Path) -> None:
    """Keras has one of 0.2 as a word; a Dense with another one was given that, too."""
    vector = keras.Input((4,), name="vector")
    network = keras.Model(vector, layers.Dense(4, activation="relu", name="dense")(vector))
    editor = opened(network, tmp_path)
    editor.set_operator(node_of(editor, "dense/relu"), "LeakyRelu", {"alpha": alpha})
    given = numbers(5, 4)
    plain = given @ network.get_layer("dense").get_weights()[0]
    result = written(editor, tmp_path).predict(given, verbose=0)
    np.testing.assert_allclose(result, np.where(plain > 0, plain, alpha * plain), atol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [
        lambda: layers.LSTM(3, return_sequences=True, name="layer"),
        lambda: layers.GRU(3, name="layer"),
        lambda: layers.GRU(3, reset_after=False, name="layer"),
        lambda: layers.Bidirectional(layers.LSTM(3), name="layer"),
        lambda: layers.SimpleRNN(3, name="layer"),
    ],
    ids=["LSTM", "GRU", "GRU that resets before", "both directions", "RNN"],
)
def test_weights_of_recurrent_layers_are_set(layer: Callable[[], Any], tmp_path: Path) -> None:
    def made(seed: int) -> keras.Model:
        keras.utils.set_random_seed(seed)
        rows = keras.Input((5, 2), name="rows")
        network = keras.Model(rows, layer()(rows))
        for variable in network.weights:
            variable.assign(np.random.default_rng(seed).normal(size=variable.shape))
        return network

    right = made(1)
    (tmp_path / "right").mkdir()
    editor, source = opened(made(2), tmp_path), opened(right, tmp_path / "right")
    node = node_of(editor, "layer")
    assert set(node.parameters) == {"W", "R", "B"}
    for role, parameter in node_of(source, "layer").parameters.items():
        editor.set_parameter(node, role, parameter.numpy())
    given = numbers(4, 5, 2)
    result = written(editor, tmp_path).predict(given, verbose=0)
    np.testing.assert_allclose(result, right.predict(given, verbose=0), atol=1e-6)


def test_numbers_that_no_variable_holds_are_refused(tmp_path: Path) -> None:
    vector = keras.Input((4,), name="vector")
    editor = opened(keras.Model(vector, layers.Rescaling(2.0, 1.0, name="scaled")(vector)), tmp_path)
    node = node_of(editor, "scaled")
    with pytest.raises(NotEditableError, match="isn't stored in a variable of its own"):
        editor.set_parameter(node, "operand", np.array(3.0, np.float32))
    with pytest.raises(NotEditableError, match="together with other operators"):
        editor.remove(node)


def test_pads_that_follow_from_open_sizes_stay_a_word(tmp_path: Path) -> None:
    picture = keras.Input((None, None, 3), name="picture")
    middle = layers.Conv2D(4, 3, strides=2, padding="same", name="conv")(picture)
    editor = opened(
        keras.Model(picture, layers.Conv2DTranspose(2, 3, strides=2, padding="same", name="wide")(middle)), tmp_path
    )
    for name in ("conv", "wide"):
        attributes = node_of(editor, name).attributes
        assert (attributes["pads"], attributes["auto_pad"], attributes["strides"]) == (None, "SAME_UPPER", (2, 2))
    kernel = numbers(4, 3, 3, 3)
    editor.set_parameter(node_of(editor, "conv"), "weight", kernel)
    editor.set_attributes(node_of(editor, "conv"), {"strides": (1, 1)})
    layer = written(editor, tmp_path).get_layer("conv")
    assert (layer.padding, layer.strides) == ("same", (1, 1))
    np.testing.assert_array_equal(np.moveaxis(layer.get_weights()[0], (-1, -2), (0, 1)), kernel)


def test_parts_of_a_separable_convolution_have_weights_of_their_own(tmp_path: Path) -> None:
    picture = keras.Input((8, 8, 3), name="picture")
    layer = layers.SeparableConv2D(4, 3, depth_multiplier=2, activation="relu", name="conv")
    editor = opened(keras.Model(picture, layer(picture)), tmp_path)
    deep, point, _ = editor.graph.nodes
    wanted = [numbers(6, 1, 3, 3), numbers(4, 6, 1, 1)]
    for node, array in zip((deep, point), wanted, strict=True):
        editor.set_parameter(node, "weight", array)
    for node, array in zip(opened(written(editor, tmp_path), tmp_path).graph.nodes, wanted, strict=False):
        np.testing.assert_array_equal(node.parameters["weight"].numpy(), array)
