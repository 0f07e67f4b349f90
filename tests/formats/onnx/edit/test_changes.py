"""Single changes of ONNX files: shared and quantized constants, opsets, operators, what stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import onnx
import pytest
from hypothesis import strategies
from onnx_networks import drawn, opened, residual, written
from small_models import images, model_of, onnx_convnet

from benchmarks.faults.steps import insert
from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.edit.editor import OnnxEditor
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.ground.graph.layer_graph import Array, Node


def node_of(editor: OnnxEditor, name: str) -> Node:
    return next(node for node in editor.graph.nodes if node.name == name)


def outputs(model: Model, **feeds: Array) -> list[Array]:
    return list(OnnxRunnable(model).run(feeds).values())


def chain(folder: Path, line: str, opset: int = 17, ir_version: int = 9, **weights: Array) -> OnnxEditor:
    """An editor of one node `n` from x to y."""
    text = f"small (float[batch, 4] x) => (float[batch, 4] y) {{ {line} }}"
    return OnnxEditor(model_of("onnx", written(folder / "model.onnx", text, weights, opset, ir_version)))


def test_one_reader_of_a_shared_constant_gets_its_own(tmp_path: Path) -> None:
    for opset, ir_version in ((17, 9), (9, 3)):  # constants were inputs too
        path = written(
            tmp_path / "twice.onnx",
            f"""small (float[2, 4] x{", float[4, 4] w" * (ir_version == 3)}) => (float[2, 4] y) {{
                [one] a = MatMul (x, w)
                [two] y = MatMul (a, w)
            }}""",
            {"w": drawn(4, 4)},
            opset,
            ir_version,
        )
        editor = OnnxEditor(model_of("onnx", path))
        editor.set_parameter(node_of(editor, "two"), "weight", np.eye(4, dtype=np.float32))
        again = OnnxEditor(editor.save(tmp_path / "out", "twice"))
        np.testing.assert_array_equal(node_of(again, "one").parameters["weight"].numpy(), drawn(4, 4))
        np.testing.assert_array_equal(node_of(again, "two").parameters["weight"].numpy(), np.eye(4))


@hypothesis.given(strategies.floats(0.125, 8), strategies.floats(0.125, 8), strategies.booleans())
def test_factors_and_transpositions_of_gemm_are_divided_out(
    tmp_path_factory: pytest.TempPathFactory, alpha: float, beta: float, flip: bool
) -> None:
    folder = tmp_path_factory.mktemp("gemm")
    line = f"[n] y = Gemm <alpha = {alpha:.6f}, beta = {beta:.6f}, transB = {int(flip)}> (x, w, b)"
    editor = chain(folder, line, w=drawn(4, 4), b=drawn(4))
    wanted = {"weight": drawn(4, 4, seed=8), "bias": drawn(4, seed=9)}
    for role, array in wanted.items():
        editor.set_parameter(node_of(editor, "n"), role, array)
    again = OnnxEditor(editor.save(folder, "changed"))
    for role, array in wanted.items():
        np.testing.assert_allclose(node_of(again, "n").parameters[role].numpy(), array, rtol=1e-6)
    assert node_of(again, "n").written == node_of(editor, "n").written


def test_what_became_part_of_the_numbers_can_be_set(tmp_path: Path) -> None:
    editor = OnnxEditor(model_of("onnx", residual(tmp_path / "residual.onnx")))
    node = next(item for item in editor.graph.nodes if item.op == "MatMul")
    editor.set_attributes(node, {"alpha": 1.0, "beta": 1.0})
    editor.set_parameter(node, "bias", np.arange(4, dtype=np.float32))  # means what it says with these factors
    again = next(item for item in OnnxEditor(editor.save(tmp_path, "changed")).graph.nodes if item.op == "MatMul")
    assert (again.written["alpha"], again.written["beta"]) == (1.0, 1.0)
    np.testing.assert_array_equal(again.parameters["weight"].numpy(), 2 * node.parameters["weight"].numpy())
    np.testing.assert_array_equal(again.parameters["bias"].numpy(), np.arange(4))


def test_quantized_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    _, feeds, model = opened("quantized", tmp_path)
    editor = OnnxEditor(model)
    node = next(item for item in editor.graph.nodes if item.op == "Conv")
    weight = node.parameters["weight"].numpy()
    with pytest.raises(NotEditableError, match="don't fit into int8"):
        editor.set_parameter(node, "weight", weight * 3)
    before = outputs(model, **feeds)[0]
    np.testing.assert_array_equal(outputs(editor.save(tmp_path, "same"), **feeds)[0], before)
    editor.set_parameter(node, "weight", weight / 2)
    again = next(item for item in OnnxEditor(editor.save(tmp_path, "half")).graph.nodes if item.op == "Conv")
    assert again.parameters["weight"].bits == 8
    assert again.parameters["weight"].scales == node.parameters["weight"].scales
    error = np.abs(again.parameters["weight"].numpy() - weight / 2).max((1, 2, 3))
    assert np.all(error <= np.array(node.parameters["weight"].scales) * 0.51)


@pytest.mark.parametrize(
    ("line", "opset", "changes"),
    [
        ("[n] y = Clip <min = -1.0> (x)", 9, {"min": None, "max": 0.25}),
        ("[n] y = Clip (x, low)", 17, {"min": -0.5, "max": 0.25}),
        ("[n] y = ReduceMean <axes = [1], keepdims = 1> (x)\n", 13, {"axes": (0,)}),
        ("[n] y = ReduceMean (x, axes)", 18, {"axes": (0,), "keepdims": True}),
        ("[n] y = Pad <pads = [0, 1, 0, -1]> (x)", 9, {"pads": (0, -1, 0, 1), "mode": "edge"}),
        ("[n] y = Pad (x, pads)", 18, {"pads": (0, -1, 0, 1), "value": 0.5}),
        ("[n] y = LeakyRelu (x)", 17, {"alpha": 0.5}),
        ("[n] y = CumSum (x, axis)", 17, {"axis": 0, "reverse": True}),
        ("[n] y = Tile (x, ones)", 17, {"repeats": (2, 1)}),
        ("[n] y = Sub (low, x)", 17, {"constant_first": False}),
        ("[n] y = Reshape (x, same)", 17, {"shape": (2, 2)}),
        ("[n] y = Softmax <axis = 1> (x)", 11, {}),
        ("[n] y = LayerNormalization (x, scale)", 17, {"epsilon": 0.5}),
    ],
)
def test_attributes_are_written_where_the_opset_has_them(
    line: str, opset: int, changes: dict[str, Any], tmp_path: Path
) -> None:
    weights = {
        "low": np.float32(-1), "axes": np.array([1]), "pads": np.array([0, 1, 0, -1]), "axis": np.int64(1),
        "ones": np.array([1, 1]), "same": np.array([0, -1]), "scale": drawn(4),
    }  # fmt: skip
    editor = chain(tmp_path, line, opset, **{name: item for name, item in weights.items() if name in line})
    editor.set_attributes(node_of(editor, "n"), changes)
    again = OnnxEditor(editor.save(tmp_path, "changed"))
    for name, value in changes.items():
        assert node_of(again, "n").attributes[name] == value


@pytest.mark.parametrize(
    ("stored", "wanted", "written"),
    [
        ([-1, 1, 4], (3, 4, 1), [-1, 4, 1]),  # as long as samples are many, whatever their number
        ([1, -1, 2], (1, 4, 1), [1, -1, 1]),
        ([0, 2, -1], (3, 4, 1), [0, 4, -1]),
        ([0, 2, 2], (3, 4, 1), [0, 4, 1]),
        ([1, 2, 2], (1, 4, 1), [1, 4, 1]),
    ],
)
def test_a_shape_leaves_open_what_was(
    stored: list[int], wanted: tuple[int, ...], written: list[int], tmp_path: Path
) -> None:
    editor = chain(tmp_path, "[n] y = Reshape (x, sizes)", sizes=np.array(stored))
    editor.set_attributes(node_of(editor, "n"), {"shape": wanted})
    [sizes] = onnx.load(editor.save(tmp_path, "changed").path).graph.initializer
    assert onnx.numpy_helper.to_array(sizes).tolist() == written


def test_a_constant_is_found_again_where_it_was_exchanged(tmp_path: Path) -> None:
    editor = chain(tmp_path, "[n] y = Mul (c, x)", c=drawn(4, seed=1))
    node, feed, new = node_of(editor, "n"), drawn(2, 4), drawn(4, seed=2)
    editor.set_operator(node, "Sub", {})
    np.testing.assert_array_equal(outputs(editor.save(tmp_path, "a"), x=feed)[0], feed - drawn(4, seed=1))
    editor.set_parameter(node, "operand", new)
    np.testing.assert_array_equal(outputs(editor.save(tmp_path, "b"), x=feed)[0], feed - new)
    editor.set_attributes(node, {"constant_first": True})
    editor.set_parameter(node, "operand", 2 * new)
    np.testing.assert_array_equal(outputs(editor.save(tmp_path, "c"), x=feed)[0], 2 * new - feed)
    editor.set_operator(node, "Add", {})
    np.testing.assert_array_equal(outputs(editor.save(tmp_path, "d"), x=feed)[0], 2 * new + feed)


def test_bounds_are_constants_or_attributes_of_a_new_node(tmp_path: Path) -> None:
    for opset in (9, 17):
        editor = chain(tmp_path, "[n] y = Identity (x)", opset)
        insert(editor, "y", [("Clip", {}, [np.float32(-0.25), np.float32(0.5)])], "bounded")
        feed = drawn(2, 4, scale=2)
        np.testing.assert_array_equal(outputs(editor.save(tmp_path, "c"), x=feed)[0], np.clip(feed, -0.25, 0.5))


def test_a_refused_change_leaves_the_model_as_it_was(tmp_path: Path) -> None:
    editor = chain(tmp_path, "[n] y = Clip (x, low, high)", low=np.float32(-1), high=np.float32(1))
    node, before = node_of(editor, "n"), editor.save(tmp_path, "before")
    for operator in ("Concat", "Conv"):
        with pytest.raises(NotEditableError):
            editor.set_operator(node, operator, {})
    with pytest.raises(NotEditableError):
        editor.set_attributes(node, {"max": 0.5, "alpha": 1.0})
    with pytest.raises(NotEditableError):
        insert(editor, "x", [("Relu", {}, []), ("Relu", {"slope": 1.0}, [])], "new")
    assert Path(editor.save(tmp_path, "after").path).read_bytes() == Path(before.path).read_bytes()


def test_weights_outside_stay_outside_and_what_else_a_file_says_stays(tmp_path: Path) -> None:
    path = onnx_convnet(tmp_path / "model.onnx", external=True)
    proto = onnx.load(path, load_external_data=False)
    proto.metadata_props.add(key="author", value="somebody")
    onnx.save(proto, path)
    before = {item.name: item.read_bytes() for item in tmp_path.iterdir()}
    editor = OnnxEditor(model_of("onnx", path))
    conv = node_of(editor, "conv")
    editor.set_parameter(conv, "weight", conv.parameters["weight"].numpy() * 2)
    changed = editor.save(tmp_path / "out", "changed")
    assert {item.name: item.read_bytes() for item in tmp_path.iterdir() if item.is_file()} == before
    assert {item.name for item in (tmp_path / "out").iterdir()} == {"changed.onnx", "changed.onnx.data"}
    assert changed.sha256 == model_sha256(Path(changed.path))  # of both
    light = onnx.load(changed.path, load_external_data=False)
    assert any(item.data_location == onnx.TensorProto.EXTERNAL for item in light.graph.initializer)
    assert light.opset_import == proto.opset_import
    assert light.metadata_props == proto.metadata_props
    assert not np.array_equal(outputs(changed, image=images())[0], outputs(model_of("onnx", path), image=images())[0])


def test_functions_are_kept_and_what_is_inside_is_refused(tmp_path: Path) -> None:
    _, _, model = opened("function", tmp_path)
    editor = OnnxEditor(model)
    inside = next(node for node in editor.graph.nodes if node.layer == "call")
    with pytest.raises(NotEditableError, match="inside a function"):
        editor.remove(inside)
    insert(editor, "h", [("Neg", {}, [])], "turned")
    assert [item.name for item in onnx.load(editor.save(tmp_path, "changed").path).functions] == ["Swiglu"]


def test_what_does_not_fit_any_more_is_refused_when_it_is_written(tmp_path: Path) -> None:
    editor = OnnxEditor(model_of("onnx", onnx_convnet(tmp_path / "model.onnx")))
    editor.set_attributes(node_of(editor, "conv"), {"strides": (1, 1)})
    with pytest.raises(NotEditableError, match="Change what else must fit"):
        editor.save(tmp_path / "out", "changed")
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


_PRODUCT = """small (float[2, 4] x) => (float[2, 4] y) {
    [one] y = MatMul (x, w)
}"""


@pytest.mark.parametrize("declared", [False, True])
def test_types_of_constants_are_declared_where_they_were(tmp_path: Path, declared: bool) -> None:
    model = model_of("onnx", written(tmp_path / "model.onnx", _PRODUCT, {"w": drawn(4, 4)}))
    if declared:
        proto = onnx.load(model.path)
        proto.graph.value_info.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [4, 4]))
        onnx.save(proto, model.path)
        model = model_of("onnx", Path(model.path))
    editor = OnnxEditor(model)
    editor.set_parameter(node_of(editor, "one"), "weight", np.eye(4, dtype=np.float32))
    before, after = (onnx.load(item.path).graph for item in (model, editor.save(tmp_path / "out", "saved")))
    assert [value.name for value in after.value_info] == [value.name for value in before.value_info]
    assert [value.name for value in after.value_info] == ["w"] * declared
