"""Changes of SavedModels and frozen graphs: TensorFlow reads what is written, with the signature that it had."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from small_models import CHANNELS, FEATURES, HEIGHT, WIDTH, freeze, model_of, save_tensorflow, tensorflow_pair

from conrepair.formats.editing.editor import Editor, NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.graph.layer_graph import Array, Node
from conrepair.ground.runtime.files.whole import sha256_of


def saved(folder: Path) -> Model:
    return model_of("tensorflow", save_tensorflow(tensorflow_pair(), folder / "saved"))


def frozen(folder: Path) -> Model:
    module = tensorflow_pair()
    return model_of("tensorflow", freeze(module.__call__.get_concrete_function(), folder / "frozen.pb"))


@pytest.fixture(params=[saved, frozen], ids=["saved-model", "frozen-graph"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Model:
    made: Model = request.param(tmp_path)
    return made


def feeds(count: int = 3) -> dict[str, Array]:
    generator = np.random.default_rng(1)
    return {
        "scene": generator.normal(size=(count, HEIGHT, WIDTH, CHANNELS)).astype(np.float32),
        "context": generator.normal(size=(count, FEATURES)).astype(np.float32),
    }


def answers(model: Model, given: dict[str, Array] | None = None) -> dict[str, Array]:
    return dict(framework("tensorflow").load(model).run(given or feeds()))


def ordered(model: Model) -> list[Array]:
    """The picture first: frozen graphs call their outputs after operators."""
    return sorted(answers(model).values(), key=lambda array: -array.ndim)


def node_of(editor: Editor, op: str) -> Node:
    return next(node for node in editor.graph.nodes if node.op == op)


def changed(model: Model, folder: Path, change: Callable[[Editor], None]) -> Model:
    """Make a change; check that inputs, names, types and open batches are as they were, and the file untouched."""
    before, hashed = framework("tensorflow").describe(model), sha256_of(Path(model.path))
    editor = open_editor(model)
    change(editor)
    made = editor.save(folder / "out", "changed")
    assert sha256_of(Path(model.path)) == hashed
    after = framework("tensorflow").describe(made)
    assert (after.inputs, after.outputs) == (before.inputs, before.outputs)
    assert after.format == before.format
    return made


def test_an_earlier_one_that_was_saved_there_is_replaced(model: Model, tmp_path: Path) -> None:
    for factor in (2, 3):
        editor = open_editor(model)
        node = node_of(editor, "Conv")
        numbers = np.asarray(node.parameters["weight"].numpy())
        editor.set_parameter(node, "weight", factor * numbers)
        made = editor.save(tmp_path / "out", "changed")
        weight = np.asarray(node_of(open_editor(made), "Conv").parameters["weight"].numpy())
        np.testing.assert_array_equal(weight, factor * numbers)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [Path(made.path).name]


def test_a_kernel_is_given_in_the_vocabularys_order(model: Model, tmp_path: Path) -> None:
    def change(editor: Editor) -> None:
        node = node_of(editor, "Conv")
        numbers = node.parameters["weight"].numpy()
        assert numbers.shape == (5, CHANNELS, 3, 3)
        editor.set_parameter(node, "weight", 2 * numbers)

    right, mixed = ordered(model)
    doubled, twice = ordered(changed(model, tmp_path, change))
    np.testing.assert_allclose(doubled, 2 * right, rtol=1e-5)
    np.testing.assert_allclose(twice, 2 * mixed, rtol=1e-5, atol=1e-5)


def test_numbers_of_variables_leave_all_else_of_a_saved_model_as_it_is(tmp_path: Path) -> None:
    model = saved(tmp_path)
    made = changed(model, tmp_path, lambda editor: editor.set_parameter(
        node_of(editor, "MatMul"), "weight", np.eye(FEATURES, 5, dtype=np.float32)
    ))  # fmt: skip
    assert (Path(made.path) / "saved_model.pb").read_bytes() == (Path(model.path) / "saved_model.pb").read_bytes()
    loaded = tf.saved_model.load(made.path)
    np.testing.assert_array_equal(loaded.weight, np.eye(FEATURES, 5))
    np.testing.assert_array_equal(loaded.kernel, tf.saved_model.load(model.path).kernel)
    given = feeds()
    again = loaded.signatures["serving_default"](**{name: tf.constant(array) for name, array in given.items()})
    np.testing.assert_allclose(again["mixed"], answers(made, given)["mixed"])


@pytest.mark.parametrize(
    ("changes", "strides", "dilations"),
    [({"strides": (1, 1)}, 1, 1), ({"pads": (0, 0, 0, 0)}, 2, 1), ({"strides": (1, 1), "dilations": (2, 2)}, 1, 2)],
    ids=["strides", "pads", "dilations"],
)
def test_attributes_of_a_window(
    model: Model, tmp_path: Path, changes: dict[str, Any], strides: int, dilations: int
) -> None:
    editor = open_editor(model)
    node = node_of(editor, "Conv")
    pads = changes.get("pads") or (None if strides == 1 else node.attributes["pads"])
    if pads is None:
        pads = (dilations,) * 4
        changes = {**changes, "pads": pads}
    editor.set_attributes(node, changes)
    # The pooling behind it takes any size, so the other output stays one vector.
    made = editor.save(tmp_path / "out", "changed")
    kernel = np.moveaxis(node.parameters["weight"].numpy(), (0, 1), (-1, -2))
    padding = [[0, 0], [pads[0], pads[2]], [pads[1], pads[3]], [0, 0]]
    right = tf.nn.relu(tf.nn.conv2d(feeds()["scene"], kernel, strides, padding, dilations=dilations))
    np.testing.assert_allclose(ordered(made)[0], right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("changes", "low", "high"), [({"max": 0.5}, 0, 0.5), ({"min": -0.25}, -0.25, np.inf)])
def test_bounds_of_a_relu(model: Model, tmp_path: Path, changes: dict[str, Any], low: float, high: float) -> None:
    editor = open_editor(model)
    node = node_of(editor, "Relu")
    editor.add_output(node.inputs[0])
    editor.set_attributes(node, changes)
    editor.add_output(node.outputs[0])
    values = [*answers(editor.save(tmp_path / "out", "changed")).values()]
    expected = [np.clip(array, low, high) for array in values]
    assert any(
        array.min() < low and any(np.array_equal(right, other) for other in values)
        for array, right in zip(values, expected, strict=True)
    )


def test_a_changed_layer_still_reads_its_variable(tmp_path: Path) -> None:
    model = saved(tmp_path)
    editor = open_editor(model)
    node = node_of(editor, "Conv")
    editor.set_attributes(node, {"strides": (1, 1), "pads": (1, 1, 1, 1)})
    editor.set_parameter(node, "weight", np.zeros(node.parameters["weight"].shape, np.float32))
    made = editor.save(tmp_path / "out", "changed")
    assert not ordered(made)[0].any()
    editor = open_editor(model)
    editor.set_attributes(node, {"strides": (1, 1), "pads": (1, 1, 1, 1)})
    described = framework("tensorflow").describe(editor.save(tmp_path / "out", "again"))
    assert described.parameters == framework("tensorflow").describe(model).parameters


def test_another_operator(model: Model, tmp_path: Path) -> None:
    made = changed(model, tmp_path, lambda editor: editor.set_operator(node_of(editor, "Relu"), "Sigmoid", {}))
    bare = changed(model, tmp_path / "bare", lambda editor: editor.remove(node_of(editor, "Relu")))
    picture = ordered(bare)[0]
    assert picture.min() < 0
    np.testing.assert_allclose(ordered(made)[0], 1 / (1 + np.exp(-picture)), rtol=1e-5)


def test_operands_are_exchanged(tmp_path: Path) -> None:
    class Difference(tf.Module):  # type: ignore[misc]
        @tf.function(
            autograph=False, input_signature=[tf.TensorSpec([None, 4], tf.float32, name=name) for name in "ab"]
        )
        def __call__(self, a: Any, b: Any) -> dict[str, Any]:
            return {"y": tf.sin(a) - tf.cos(b)}

    model = model_of("tensorflow", save_tensorflow(Difference(), tmp_path / "saved"))
    given = {name: np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32) for name in "ab"}
    (right,) = answers(model, given).values()
    made = changed(model, tmp_path, lambda editor: editor.swap_inputs(node_of(editor, "Sub"), 0, 1))
    np.testing.assert_array_equal(answers(made, given)["y"], -right)
    turned = changed(model, tmp_path / "turned", lambda editor: editor.exchange_inputs(0, 1))
    exchanged = answers(model, {"a": given["b"], "b": given["a"]})
    np.testing.assert_array_equal(answers(turned, given)["y"], exchanged["y"])


def test_outputs_are_exchanged_under_their_names(tmp_path: Path) -> None:
    for make in (saved, frozen):
        model = make(tmp_path)
        editor = open_editor(model)
        editor.exchange_outputs(0, 1)
        made = editor.save(tmp_path / "out", "changed")
        right, found = answers(model), answers(made)
        assert list(right) == list(found)
        for one, two in zip(right.values(), reversed(found.values()), strict=True):
            np.testing.assert_array_equal(one, two)


def test_a_tensor_that_is_also_an_output_is_computed_anew(model: Model, tmp_path: Path) -> None:
    def change(editor: Editor) -> None:
        tensor = node_of(editor, "Relu").outputs[0]
        editor.graft(tensor, [Operation("Mul", (tensor,), {}, {"operand": np.float32(3)})], "tripled")

    right, mixed = ordered(model)
    picture, vector = ordered(changed(model, tmp_path, change))
    np.testing.assert_allclose(picture, 3 * right, rtol=1e-6)
    np.testing.assert_allclose(vector, 3 * mixed, rtol=1e-4, atol=1e-5)


def test_what_others_read_too_stays(tmp_path: Path) -> None:
    class Twice(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(np.eye(4, dtype=np.float32))

        @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def __call__(self, x: Any) -> dict[str, Any]:
            return {"y": tf.matmul(tf.sin(tf.matmul(x, self.weight)), self.weight)}

    model = model_of("tensorflow", save_tensorflow(Twice(), tmp_path / "saved"))
    x = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32)

    def change(editor: Editor) -> None:
        last = [node for node in editor.graph.nodes if node.op == "MatMul"][-1]
        editor.set_parameter(last, "weight", 2 * np.eye(4, dtype=np.float32))

    made = changed(model, tmp_path, change)
    np.testing.assert_allclose(answers(made, {"x": x})["y"], 2 * np.sin(x), rtol=1e-6)


def test_other_signatures_are_kept(tmp_path: Path) -> None:
    module = tensorflow_pair()
    other = tf.function(
        lambda context: {"sum": tf.reduce_sum(tf.matmul(context, module.weight), 1)},
        input_signature=[tf.TensorSpec([None, FEATURES], tf.float32, name="context")],
        autograph=False,
    )
    signatures = {"serving_default": module.__call__, "same": module.__call__, "other": other}
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=signatures)
    editor = open_editor(model_of("tensorflow", tmp_path / "saved"))
    editor.set_operator(node_of(editor, "Relu"), "Sigmoid", {})
    made = editor.save(tmp_path / "out", "changed")
    given = {name: tf.constant(array) for name, array in feeds().items()}
    before, after = (tf.saved_model.load(path).signatures for path in (str(tmp_path / "saved"), made.path))
    assert set(after) == set(signatures)
    picture = after["serving_default"](**given)["picture"]
    np.testing.assert_array_equal(after["same"](**given)["picture"], picture)
    assert not np.array_equal(before["same"](**given)["picture"], picture)
    context = given["context"]
    np.testing.assert_array_equal(after["other"](context=context)["sum"], before["other"](context=context)["sum"])


def test_what_cannot_be_changed_is_refused(tmp_path: Path) -> None:
    editor = open_editor(saved(tmp_path))
    node = node_of(editor, "Conv")
    with pytest.raises(NotEditableError, match="not of shape"):
        editor.set_parameter(node, "weight", np.zeros((5, CHANNELS, 5, 5), np.float32))
    with pytest.raises(NotEditableError, match="LSTM"):
        editor.set_operator(node, "LSTM", {})
    with pytest.raises(NotEditableError, match="no tensor missing"):
        editor.graft("missing", [Operation("Relu", ("missing",))], "relu")


def test_a_graph_that_reads_a_table_is_not_written_anew(tmp_path: Path) -> None:
    class Looked(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            values = tf.lookup.KeyValueTensorInitializer(tf.range(4, dtype=tf.int64), tf.range(4.0))
            self.table = tf.lookup.StaticHashTable(values, 0.0)

        @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 4], tf.int64, name="x")])
        def __call__(self, x: Any) -> dict[str, Any]:
            return {"y": tf.sin(self.table.lookup(x))}

    editor = open_editor(model_of("tensorflow", save_tensorflow(Looked(), tmp_path / "saved")))
    editor.set_operator(node_of(editor, "Sin"), "Cos", {})
    with pytest.raises(NotEditableError, match="a table"):
        editor.save(tmp_path / "out", "changed")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
