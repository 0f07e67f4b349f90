"""A source's operators in the target's layout compute what they compute in the source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_networks import drawn, written
from small_models import model_of

from conrepair.diagnosis.localization.align.layout import Layout, layouts
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.diagnosis.repairs.baking import BatchPlace, batch_places
from conrepair.diagnosis.repairs.transplant import KnownTensor, transplant
from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.onnx.edit.editor import OnnxEditor
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.formats.onnx.read.network import open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Array

_SHAPE = (2, 3, 5, 4)
_LAST = Layout(_SHAPE, _SHAPE, (0, 2, 3, 1), (2, 5, 4, 3))

NETWORKS = {  # lines, the result's shape, and how many values are transposed at most
    "elementwise": ("h = Add (x, c) \n y = Relu (h)", _SHAPE, 0),
    "a convolution": ("y = Conv <pads = [1, 1, 1, 1]> (x, w, b)", (2, 6, 5, 4), 2),  # ONNX has its channels first
    "a branch": ("h = Sigmoid (x) \n y = Mul (x, h)", _SHAPE, 0),
    "branches of channels": ("h = Neg (x) \n y = Concat <axis = 1> (x, h)", (2, 6, 5, 4), 0),
    "a softmax of channels": ("y = Softmax <axis = 1> (x)", _SHAPE, 0),
    "means of places": ("y = ReduceMean <axes = [2, 3], keepdims = 0> (x)", (2, 3), 0),
    "means of rows": ("y = ReduceMean <axes = [3], keepdims = 0> (x)", (2, 3, 5), 1),
    "a transposition": ("y = Transpose <perm = [0, 2, 3, 1]> (x)", (2, 5, 4, 3), 1),  # and its result is turned again
    "halves": ("u, v = Split <axis = 3> (x) \n h = Neg (v) \n y = Concat <axis = 3> (h, u)", _SHAPE, 0),
    "one of two pieces": ("u, v = Split <axis = 1> (x, k) \n y = Neg (v)", (2, 2, 5, 4), 0),
    "pads": ("y = Pad (x, p)", (2, 3, 7, 5), 0),
    "rows": ("y = Reshape (x, s)", (2, 60), 1),
    "a product": ("h = Reshape (x, s) \n y = MatMul (h, m)", (2, 7), 1),
    "a product of rows": ("y = MatMul (x, n)", (2, 3, 5, 7), 2),
}


def network(lines: str, shape: tuple[int, ...], folder: Path) -> OnnxEditor:
    weights = {
        "c": drawn(3, 1, 1), "w": drawn(6, 3, 3, 3), "b": drawn(6), "p": np.array([0, 0, 1, 0, 0, 0, 1, 1]),
        "s": np.array([0, 60]), "m": drawn(60, 7), "n": drawn(4, 7), "k": np.array([1, 2]),
    }  # fmt: skip
    sizes = ", ".join(map(str, shape))
    text = f"small (float[2, 3, 5, 4] x) => (float[{sizes}] y) {{ {lines} }}"
    used = {name: item for name, item in weights.items() if f" {name}" in lines}
    return OnnxEditor(model_of("onnx", written(folder / "source.onnx", text, used, 13)))


def end_layout(shape: tuple[int, ...]) -> Layout:
    """As it is, with the channels last where there are places."""
    if len(shape) < 4:
        return Layout(shape, shape, tuple(range(len(shape))), shape)
    return Layout(shape, shape, (0, 2, 3, 1), tuple(shape[axis] for axis in (0, 2, 3, 1)))


def answer(editor: OnnxEditor, folder: Path, feed: Array) -> Array:
    return next(iter(OnnxRunnable(editor.save(folder, "model")).run({"x": feed}).values()))


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_transplanted_computes_the_same(name: str, tmp_path: Path) -> None:
    lines, shape, most = NETWORKS[name]
    source, layout = network(lines, shape, tmp_path), end_layout(shape)
    operations = transplant(source.graph.nodes, source.graph, {"x": KnownTensor("x", _LAST)}, layout)
    assert sum(item.operator == "Transpose" for item in operations) <= most
    text = "small (float[2, 5, 4, 3] x) => (float[2, 5, 4, 3] y) { y = Identity (x) }"
    target = OnnxEditor(model_of("onnx", written(tmp_path / "target.onnx", text, {}, 13)))
    target.graft("x", operations, "new")
    feed = drawn(*_SHAPE, seed=5)
    right = answer(source, tmp_path / "right", feed)
    given = answer(target, tmp_path / "given", np.ascontiguousarray(_LAST.to_target(feed)))
    np.testing.assert_allclose(given, layout.to_target(right), rtol=1e-5, atol=1e-6)


def test_values_that_are_merged_in_the_target_are_taken_apart(tmp_path: Path) -> None:
    source = network("y = Conv <pads = [1, 1, 1, 1]> (x, w, b)", (2, 6, 5, 4), tmp_path)
    merged = next(item for item in layouts(_SHAPE, (2, 20, 3)) if not item.is_plain)
    end = next(item for item in layouts((2, 6, 5, 4), (2, 20, 6)) if not item.is_plain)
    operations = transplant(source.graph.nodes, source.graph, {"x": KnownTensor("x", merged)}, end)
    shapes = [item.attributes["shape"] for item in operations if item.operator == "Reshape"]
    assert shapes
    assert all(isinstance(shape, tuple) and shape[0] == -1 for shape in shapes)  # of any batch
    text = "small (float[2, 20, 3] x) => (float[2, 20, 3] y) { y = Identity (x) }"
    target = OnnxEditor(model_of("onnx", written(tmp_path / "target.onnx", text, {}, 13)))
    target.graft("x", operations, "new")
    feed = drawn(*_SHAPE, seed=6)
    given = answer(target, tmp_path / "given", np.ascontiguousarray(merged.to_target(feed)))
    right = answer(source, tmp_path / "right", feed)
    np.testing.assert_allclose(given, end.to_target(right), rtol=1e-5, atol=1e-6)


def test_what_has_no_partner_is_refused(tmp_path: Path) -> None:
    source = network("y = Relu (x)", _SHAPE, tmp_path)
    with pytest.raises(NotEditableError, match="the converted model has no counterpart of the original's tensor x"):
        transplant(source.graph.nodes, source.graph, {}, _LAST)


def test_the_batch_is_followed_through_other_shapes(tmp_path: Path) -> None:
    lines = """h = Transpose <perm = [1, 0, 2]> (x)
        i = Reshape (h, heads)
        j = Transpose <perm = [1, 0, 2]> (i)
        y = Reshape (j, apart)
        k = Reshape (h, rows)
        l = Relu (k)
        z = Reshape (l, again)"""
    weights = {"heads": [12, 16, 8], "apart": [4, 4, 12, 8], "rows": [48, 32], "again": [12, 4, 32]}
    constants = {name: np.array(shape) for name, shape in weights.items()}
    text = f"small (float[4, 12, 32] x) => (float[4, 4, 12, 8] y, float[12, 4, 32] z) {{ {lines} }}"
    graph = OnnxEditor(model_of("onnx", written(tmp_path / "model.onnx", text, constants, 13))).graph
    places = {"x": 0, "h": 1, "i": 1, "j": 0, "y": 0, "z": 1}
    expected = {name: BatchPlace(axis) for name, axis in places.items()}
    assert batch_places(graph) == expected | {"k": BatchPlace(0, lead=12), "l": BatchPlace(0, lead=12)}


@pytest.mark.parametrize("line", ["y = Mul (x, c)", "y = Sub (c, x)"])
def test_what_follows_from_sizes_alone_is_written_as_numbers(line: str, tmp_path: Path) -> None:
    # Sizes that the graph doesn't declare: else they're constants when the file is opened.
    lines = f"s = Shape (x) \n f = Cast <to = 1> (s) \n a = Reshape (f, p) \n c = Sin (a) \n {line}"
    text = f"small (float[a, b, c, d] x) => (float[a, b, c, d] y) {{ {lines} }}"
    path = written(tmp_path / "source.onnx", text, {"p": np.array([1, 1, 2, 2])}, 13)
    source = OnnxEditor(model_of("onnx", path))
    assert source.graph.unfed == {"f", "a", "c"}
    shape, known, feed = (
        (4, 3, 2, 2),
        {"x": KnownTensor("x", layouts((4, 3, 2, 2), (4, 3, 2, 2))[0])},
        drawn(4, 3, 2, 2),
    )
    network = open_network(model_of("onnx", path), [TensorSpec("x", ("a", "b", "c", "d"), "float32")])
    constants = Activations(network, {"x": feed}, tmp_path / "shelf").constants()
    np.testing.assert_allclose(constants["c"], np.sin(np.array(shape, np.float32)).reshape(1, 1, 2, 2), rtol=1e-6)
    operations = transplant(source.graph.nodes, source.graph, known, known["x"].layout, constants)
    assert len(operations) == 1
    text = "small (float[4, 3, 2, 2] x) => (float[4, 3, 2, 2] y) { y = Identity (x) }"
    target = OnnxEditor(model_of("onnx", written(tmp_path / "target.onnx", text, {}, 13)))
    target.graft("x", operations, "new")
    right = answer(source, tmp_path / "right", feed)
    np.testing.assert_allclose(answer(target, tmp_path / "given", feed), right, rtol=1e-6)


def test_numbers_of_one_batch_are_not_carried(tmp_path: Path) -> None:
    lines = "s = Shape (x) \n e = Expand (one, s) \n c = Sin (e) \n y = Mul (x, c)"
    text = f"small (float[a, b] x) => (float[a, b] y) {{ {lines} }}"
    model = model_of("onnx", written(tmp_path / "model.onnx", text, {"one": drawn(1, 1)}, 13))
    network = open_network(model, [TensorSpec("x", ("a", "b"), "float32")])
    assert "c" in network.graph.unfed
    assert "c" not in Activations(network, {"x": drawn(4, 3)}, tmp_path / "shelf").constants()
