"""Constants of operators that compute with integers: read as the numbers meant, written with scales of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx_networks import drawn, written
from saturating import exact_products
from small_models import model_of

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.edit.editor import OnnxEditor
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.ground.graph.layer_graph import Array, Node

_DATA = 0.05  # the scale of what's read
_RESULT = 0.1
_TEXTS = {
    "Conv": (
        "float[2, 3, 5, 5] x",
        "float[2, 4, 5, 5] y",
        "QLinearConv <pads = [1, 1, 1, 1]> (q, s, z, w, ws, wz, rs, rz, b)",
    ),
    "MatMul": ("float[2, 6] x", "float[2, 4] y", "QLinearMatMul (q, s, z, w, ws, wz, rs, rz)"),
    "Gemm": ("float[2, 6] x", "float[2, 4] y", "com.microsoft.QGemm <transB = 1> (q, s, z, w, ws, wz, b, rs, rz)"),
    "Add": ("float[2, 4] x", "float[2, 4] y", "com.microsoft.QLinearAdd (q, s, z, w, ws, wz, rs, rz)"),
}
_SHAPES = {"Conv": (4, 3, 3, 3), "MatMul": (6, 4), "Gemm": (4, 6), "Add": (4,)}


def opened(kind: str, folder: Path, *, channels: bool = False, zero: int = 0) -> OnnxEditor:
    begin, end, call = _TEXTS[kind]
    text = f"""small ({begin}) => ({end}) {{
        q = QuantizeLinear (x, s, z)
        [n] r = {call}
        y = DequantizeLinear (r, rs, rz)
    }}"""
    count = 4 if channels else 1
    scale = np.linspace(0.01, 0.02, count, dtype=np.float32) if channels else np.array(0.02, np.float32)
    stored = np.random.default_rng(0).integers(-100, 100, _SHAPES[kind]).astype(np.int8)
    weights = {
        "s": np.array(_DATA, np.float32), "z": np.array(3, np.int8), "w": stored, "ws": scale,
        "wz": np.full(scale.shape, zero, np.int8), "rs": np.array(_RESULT, np.float32), "rz": np.array(-5, np.int8),
        "b": np.arange(-200, 200, 100, dtype=np.int32),
    }  # fmt: skip
    if kind in {"MatMul", "Add"}:
        del weights["b"]
    return OnnxEditor(model_of("onnx", written(folder / "model.onnx", text, weights)))


def node_of(editor: OnnxEditor) -> Node:
    return next(node for node in editor.graph.nodes if node.name == "n")


def computed(kind: str, node: Node, x: Array) -> Array:
    """What real numbers give."""
    import torch

    weight = node.parameters["operand" if kind == "Add" else "weight"].numpy()
    bias = node.parameters["bias"].numpy() if "bias" in node.parameters else 0.0
    if kind == "Add":
        return x + weight
    if kind == "Conv":
        result = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(weight), padding=1).numpy()
        return result + np.reshape(bias, (-1, 1, 1))
    return x @ weight + bias


def assert_right(kind: str, editor: OnnxEditor, folder: Path) -> None:
    """The file computes what the graph says of its parameters."""
    model = editor.save(folder, "saved")
    again = OnnxEditor(model)
    x = np.clip(drawn(*([2, 3, 5, 5] if kind == "Conv" else [2, 4] if kind == "Add" else [2, 6])), -3, 3)
    x = (np.rint(x / _DATA) * _DATA).astype(np.float32)
    expected = computed(kind, node_of(again), x)
    low, high = ((edge + 5) * _RESULT for edge in (-128, 127))
    (result,) = OnnxRunnable(model).run({"x": x}).values()
    np.testing.assert_allclose(result, np.clip(expected, low, high), atol=_RESULT * 0.51)


@pytest.mark.parametrize("channels", [False, True], ids=["one", "channels"])
@pytest.mark.parametrize("kind", ["Conv", "MatMul", "Gemm"])
def test_weights_get_scales_of_their_own(kind: str, channels: bool, tmp_path: Path) -> None:
    editor = opened(kind, tmp_path, channels=channels)
    node = node_of(editor)
    assert node.op == kind.replace("Gemm", "MatMul")
    weight = node.parameters["weight"]
    assert (weight.bits, len(weight.scales)) == (8, 4 if channels else 1)
    assert_right(kind, editor, tmp_path)
    right = drawn(*weight.shape, seed=4, scale=0.05)
    editor.requantize(node, "weight", right)
    assert_right(kind, editor, tmp_path)
    held = node_of(OnnxEditor(editor.save(tmp_path, "again")))
    new = held.parameters["weight"]
    steps = np.array(new.scales).reshape((-1, 1, 1, 1) if kind == "Conv" else (-1,))
    assert (np.abs(new.numpy() - right) <= 0.5001 * steps).all()
    if "bias" in node.parameters:  # stands for the same, in finer steps
        product = _DATA * np.array(new.scales)
        np.testing.assert_allclose(
            held.parameters["bias"].numpy(), node.parameters["bias"].numpy(), atol=0.51 * product.max()
        )


@pytest.mark.parametrize("kind", ["MatMul", "Gemm", "Add"])
def test_a_zero_point_follows_the_numbers(kind: str, tmp_path: Path) -> None:
    editor = opened(kind, tmp_path, zero=7)
    role = "operand" if kind == "Add" else "weight"
    node = node_of(editor)
    assert_right(kind, editor, tmp_path)
    right = np.abs(drawn(*node.parameters[role].shape, seed=4))
    editor.requantize(node, role, right)
    held = node_of(OnnxEditor(editor.save(tmp_path, "again"))).parameters[role]
    assert np.abs(held.numpy() - right).max() <= 0.5001 * right.max() / 255
    assert_right(kind, editor, tmp_path)


@pytest.mark.parametrize("kind", ["Conv", "Gemm"])
def test_other_numbers_keep_their_steps(kind: str, tmp_path: Path) -> None:
    editor = opened(kind, tmp_path)
    node = node_of(editor)
    weight, bias = node.parameters["weight"], node.parameters["bias"]
    editor.set_parameter(node, "weight", weight.numpy() / 2)
    editor.set_parameter(node, "bias", bias.numpy() * 3)
    held = node_of(OnnxEditor(editor.save(tmp_path, "again"))).parameters
    assert held["weight"].scales == weight.scales
    assert np.abs(held["weight"].numpy() - weight.numpy() / 2).max() <= 0.5001 * weight.scales[0]
    np.testing.assert_allclose(held["bias"].numpy(), bias.numpy() * 3, rtol=1e-6)
    assert_right(kind, editor, tmp_path)


def test_numbers_beyond_the_type_are_refused(tmp_path: Path) -> None:
    editor = opened("Conv", tmp_path)
    node = node_of(editor)
    with pytest.raises(NotEditableError, match="Change its scales first"):
        editor.set_parameter(node, "weight", node.parameters["weight"].numpy() * 2)
    with pytest.raises(NotEditableError, match="has the steps of its weights"):
        editor.requantize(node, "bias", node.parameters["bias"].numpy())
    channels = opened("Conv", tmp_path, channels=True, zero=1)
    with pytest.raises(NotEditableError, match="a zero point for each channel"):
        channels.requantize(node_of(channels), "weight", node_of(channels).parameters["weight"].numpy())


_DYNAMIC = {
    "MatMul": ("float[2, 6] x", "float[2, 4] y", "MatMulInteger (q, w, z, wz)"),
    "Conv": ("float[2, 3, 5, 5] x", "float[2, 4, 5, 5] y", "ConvInteger <pads = [1, 1, 1, 1]> (q, w, z, wz)"),
}
_SCALED = {
    "at once": "p = Mul (s, ws)\n y = Mul (f, p)",
    "one by one": "p = Mul (f, s)\n y = Mul (ws, p)",
    "by another": "p = Mul (t, ws)\n y = Mul (f, p)",  # a scale, and nobody says of what
    "by two": "g = Mul (f, ws)\n p = Mul (s, ws)\n y = Mul (g, p)",
}


def dynamic(kind: str, scaled: str, folder: Path, *, channels: bool = False) -> OnnxEditor:
    """Quantized as it runs, as ONNX Runtime's quantizer writes it."""
    begin, end, call = _DYNAMIC[kind]
    text = f"""small ({begin}, float t) => ({end}) {{
        q, s, z = DynamicQuantizeLinear (x)
        [n] i = {call}
        f = Cast <to = 1> (i)
        {_SCALED[scaled]}
    }}"""
    shape = ((4, 1, 1) if kind == "Conv" else (4,)) if channels else ()
    stored = np.random.default_rng(0).integers(-100, 100, _SHAPES[kind]).astype(np.int8)
    scale = np.linspace(0.01, 0.02, 4 if channels else 1, dtype=np.float32).reshape(shape)
    return OnnxEditor(
        model_of("onnx", written(folder / "model.onnx", text, {"w": stored, "ws": scale, "wz": np.array(0, np.int8)}))
    )


@exact_products
@pytest.mark.parametrize("channels", [False, True], ids=["one", "channels"])
@pytest.mark.parametrize("scaled", ["at once", "one by one"])
@pytest.mark.parametrize("kind", ["MatMul", "Conv"])
def test_weights_whose_scale_stands_behind_the_product(
    kind: str, scaled: str, channels: bool, tmp_path: Path
) -> None:
    editor = dynamic(kind, scaled, tmp_path, channels=channels)
    node = node_of(editor)
    assert (node.op, node.parameters["weight"].bits) == (kind, 8)
    wanted = drawn(*node.parameters["weight"].shape, seed=4, scale=0.05)
    x = drawn(*([2, 3, 5, 5] if kind == "Conv" else [2, 6]))

    def check(model: Model, step: float) -> None:
        expected = computed(kind, node_of(OnnxEditor(model)), x)
        (result,) = OnnxRunnable(model).run({"x": x, "t": np.ones((), np.float32)}).values()
        np.testing.assert_allclose(result, expected, atol=0.02 * np.abs(expected).max())
        held = node_of(OnnxEditor(model)).parameters["weight"]
        steps = np.array(held.scales).reshape((-1, 1, 1, 1) if kind == "Conv" else (-1,))
        assert (np.abs(held.numpy() - wanted) <= 0.5001 * np.maximum(steps, step)).all()

    editor.set_parameter(node, "weight", wanted)
    check(editor.save(tmp_path, "same steps"), 0.01)
    editor = dynamic(kind, scaled, tmp_path, channels=channels)
    editor.requantize(node_of(editor), "weight", wanted)
    check(editor.save(tmp_path, "own steps"), 0.0)


def test_a_scale_that_others_have_too_stays(tmp_path: Path) -> None:
    text = """small (float[2, 6] x) => (float[2, 4] y, float[2, 4] other) {
        q, s, z = DynamicQuantizeLinear (x)
        p = Mul (s, ws)
        [n] i = MatMulInteger (q, w, z)
        f = Cast <to = 1> (i)
        y = Mul (f, p)
        [m] j = MatMulInteger (q, v, z)
        g = Cast <to = 1> (j)
        other = Mul (g, p)
    }"""
    stored = np.random.default_rng(0).integers(-100, 100, (2, 6, 4)).astype(np.int8)
    weights = {"w": stored[0], "v": stored[1], "ws": np.array(0.01, np.float32)}
    editor = OnnxEditor(model_of("onnx", written(tmp_path / "model.onnx", text, weights)))
    node = node_of(editor)
    assert node.parameters["weight"].scales == pytest.approx((0.01,))
    with pytest.raises(NotEditableError, match="is others' too"):
        editor.requantize(node, "weight", node.parameters["weight"].numpy() * 3)
    editor.set_parameter(node, "weight", node.parameters["weight"].numpy() / 2)


def test_unsigned_integers_without_a_zero_point_hold_nothing_negative(tmp_path: Path) -> None:
    text = """small (float[2, 6] x) => (float[2, 4] y) {
        q, s, z = DynamicQuantizeLinear (x)
        [n] i = MatMulInteger (q, w, z)
        f = Cast <to = 1> (i)
        p = Mul (s, ws)
        y = Mul (f, p)
    }"""
    weights = {"w": np.full((6, 4), 9, np.uint8), "ws": np.array(0.01, np.float32)}
    editor = OnnxEditor(model_of("onnx", written(tmp_path / "model.onnx", text, weights)))
    with pytest.raises(NotEditableError, match="zero point"):
        editor.requantize(node_of(editor), "weight", drawn(6, 4))
    editor.requantize(node_of(editor), "weight", np.abs(drawn(6, 4)))


@pytest.mark.parametrize("scaled", ["by another", "by two"])
def test_without_a_known_scale_integers_stay_integers(tmp_path: Path, scaled: str) -> None:
    node = node_of(dynamic("MatMul", scaled, tmp_path))
    assert node.op == "MatMulInteger"
    assert not any(parameter.bits for parameter in node.parameters.values())
