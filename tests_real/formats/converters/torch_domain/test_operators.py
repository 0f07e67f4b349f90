"""What onnx2torch reads sizes for, lacks or computes wrong: ours computes what ONNX Runtime does, for any batch."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
from onnx import numpy_helper, parser

from conrepair.formats.converters.all_converters import converter
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.formats.torch.load.framework import TorchRunnable
from conrepair.ground.data.tensor_spec import TensorSpec


def check(folder: Path, text: str, *, opset: int = 17, rank: int = 3, **constants: Any) -> None:
    """Convert a graph from x (float32 [batch, 3, 4]) to y; it must be an exported program that takes any batch."""
    sizes = ", ".join(["batch", *(f"size_{axis}" for axis in range(1, rank))][:rank])
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[batch, 3, 4] x) => (float[{sizes}] y) {{ {text} }}'
    )
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    onnx.save(proto, folder / "net.onnx")
    source = small.model_of("onnx", folder / "net.onnx")
    step = converter("onnx2torch")
    name = step.convert(source, folder, step.complete({}))
    assert name == "model.pt2"
    reference = OnnxRunnable(source)
    target = TorchRunnable(small.model_of("torch", folder / name))
    for batch in (2, 1, 5):
        data = np.random.default_rng(batch).normal(size=(batch, 3, 4)).astype(np.float32)
        (expected,) = reference.run({"x": data}).values()
        (result,) = target.run({target.inputs[0].name: data}).values()
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


TO_FLOAT = "y = Cast<to = 1>(r)"


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("s = Shape(x) b = Gather(s, i0) u = Unsqueeze(b, a0) n = Concat<axis = 0>(u, rest) y = Reshape(x, n)", 2),
        ("s = Shape(x) b = Slice(s, a0, a1) n = Concat<axis = 0>(b, minus) y = Reshape(x, n)", 2),
        ("s = Shape<end = 1>(x) n = Concat<axis = 0>(s, a1, a1) e = ConstantOfShape(n) y = Add(x, e)", 3),
        ("s = Shape(x) n = Mul(s, ones) w = Expand(half, n) y = Add(x, w)", 3),
        ("s = Size(x) d = Div(s, i4) u = Unsqueeze(d, a0) n = Concat<axis = 0>(u, minus) y = Reshape(x, n)", 2),
        ("s = Shape(x) b = Gather(s, i0) r = Range(i0, b, i1) f = Cast<to=1>(r) u = Unsqueeze(f, a12) y = Add(x, u)",
         3),
        ("s = Shape(x) b = Gather(s, i0) m = Mod(b, i1) f = Cast<to = 1>(m) y = Add(x, f)", 3),
        ("s = Shape(x) e = Equal(s, minus3) n = Where(e, ones, s) w = Expand(half, n) y = Mul(x, w)", 3),
        ("p = Pad(x, pads) y = Slice(p, a1, big, a1)", 3),
        ("y = Pad(x, pads, lowest)", 3),
        ("y = Pad(x, pads, f1)", 3),
        ("y = Slice(x, minus, small, a1, minus)", 3),
        ("g = Gather<axis = 1>(x, i1) y = Relu(g)", 2),
        ("g = Gather<axis = 1>(x, several) y = Relu(g)", 3),
        ("y = Tile(x, twice)", 3),
        ("a, b = Split<axis = 1>(x, parts) y = Concat<axis = 1>(b, a)", 3),
        ("q = Squeeze(u3, a0) s = Unsqueeze(x, a0) t = Squeeze(s, a0) y = Mul(t, q)", 3),
        ("y = ReduceSum<keepdims = 0>(x, a12)", 1),
    ],
)  # fmt: skip
def test_sizes_of_any_batch(tmp_path: Path, text: str, rank: int) -> None:
    known = {
        "i0": np.array(0), "i1": np.array(1), "i4": np.array(4), "a0": np.array([0]), "a1": np.array([1]),
        "a12": np.array([1, 2]), "rest": np.array([12]), "minus": np.array([-1]), "minus3": np.array([-1, -1, -1]),
        "ones": np.array([1, 1, 1]), "half": np.float32([0.5]), "big": np.array([2**62]),
        "small": np.array([-(2**62)]), "pads": np.array([0, 1, 2, 0, 0, 3]),
        "several": np.array([2, -3]), "twice": np.array([1, 2, 1]),
        "parts": np.array([1, 2]), "u3": np.ones((1, 3, 4), np.float32), "f1": np.float32(3),
        "lowest": np.float32(-np.inf),
    }  # fmt: skip
    used = {name: value for name, value in known.items() if f" {name}" in text or f"({name}" in text}
    check(tmp_path, text, rank=rank, **used)


@pytest.mark.parametrize(
    "text",
    [
        "y = CumSum(x, one)",
        "y = CumSum<exclusive = 1, reverse = 1>(x, one)",
        f"l = Log(x) r = IsInf<detect_negative = 0>(l) {TO_FLOAT}",
        f"w = Cast<to = 6>(x) p = Pow(w, half) r = Relu(p) {TO_FLOAT}",
        "y = Selu<alpha = 2.0, gamma = 3.0>(x)",
        "y = Sinh(x)",
        "y = ReduceMax<axes = [0, -1], keepdims = 0>(x)",
        "y = ReduceMin<axes = [1, 2]>(x)",
        "m = ReduceProd<axes = [-1, 1], keepdims = 0>(x) y = Relu(m)",
        f"w = Cast<to = 7>(x) r = Clip(w, one) {TO_FLOAT}",
        "y, m = LayerNormalization<axis = 1>(x, weight)",
        "v, y = LayerNormalization(x, row, row)",
        "low = ReduceMean<keepdims = 0>(x) y = Clip(x, low)",
        "y = Trilu<upper = 0>(x)",
        "c = Floor(x) y, r = TopK(c, k)",
        f"c = Floor(x) v, r = TopK(c, k) {TO_FLOAT}",
        "y = GatherElements<axis = 2>(x, places)",
        "y = ScatterND<reduction = \"mul\">(x, where, what)",
        "y = MeanVarianceNormalization<axes = [2]>(x)",
        "y = HardSwish(x)",
    ],
)  # fmt: skip
def test_operators(tmp_path: Path, text: str) -> None:
    known = {
        "one": np.array(1), "half": np.float32(1.5), "weight": np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4),
        "row": np.linspace(1, 2, 4, dtype=np.float32), "k": np.array([2]), "places": np.array([[[-1, 0, 1, -2]]]),
        "where": np.array([[0, 1]]), "what": np.full((1, 4), 2, np.float32),
    }  # fmt: skip
    check(tmp_path, text, **{name: value for name, value in known.items() if f" {name}" in text})


@pytest.mark.parametrize(
    "attributes",
    [
        'mode = "nearest"',
        'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"',
        'mode = "nearest", coordinate_transformation_mode = "align_corners", nearest_mode = "ceil"',
        'mode = "linear"',
        'mode = "linear", coordinate_transformation_mode = "align_corners"',
        'mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel"',
        'mode = "linear", coordinate_transformation_mode = "asymmetric"',
        'mode = "cubic"',
        'mode = "cubic", coordinate_transformation_mode = "asymmetric", cubic_coeff_a = -0.5, exclude_outside = 1',
    ],
)
@pytest.mark.parametrize("sizes", [[7, 9], [2, 5]])
def test_resize(tmp_path: Path, attributes: str, sizes: list[int]) -> None:
    """Images of one channel: ONNX Runtime resizes the last two of four axes in cubic mode."""
    target = "u = Unsqueeze(x, axis) n = Shape<end = 2>(u) w = Concat<axis = 0>(n, sizes)"
    text = f"{target} y = Resize<{attributes}>(u, , , w)"
    check(tmp_path, text, rank=4, axis=np.array([1]), sizes=np.array(sizes))


def test_a_symbolic_size_behind_the_batch(tmp_path: Path) -> None:
    """Declared by the model that it was converted from, it's used as an example only."""
    text = "s = Shape(x) n = Gather(s, i) r = Reshape(x, target) y = Mul(r, two)"
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> '
        f"g (float[batch, length] x) => (float[batch, length, one] y) {{ {text} }}"
    )
    for name, value in {"i": np.array(1), "target": np.array([0, -1, 1]), "two": np.float32(2)}.items():
        proto.graph.initializer.append(numpy_helper.from_array(value, name))
    onnx.save(proto, tmp_path / "net.onnx")
    source = small.model_of("onnx", tmp_path / "net.onnx")
    source = dataclasses.replace(source, inputs=(TensorSpec("x", ("batch", "length"), "float32"),))
    step = converter("onnx2torch")
    name = step.convert(source, tmp_path, step.complete({}))
    target = TorchRunnable(small.model_of("torch", tmp_path / name))
    for shape in ((2, 7), (3, 64)):
        data = np.ones(shape, np.float32)
        (result,) = target.run({target.inputs[0].name: data}).values()
        np.testing.assert_array_equal(result, 2 * data[..., None])


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("operator", "gates", "attributes"),
    [
        ("LSTM", 4, ""),
        ("GRU", 3, ", linear_before_reset = 1"),
        ("RNN", 1, ""),
        ("RNN", 1, ', activations = ["Relu"]'),
    ],
)
def test_recurrent(tmp_path: Path, operator: str, gates: int, attributes: str, direction: str) -> None:
    """Over three steps, from a state that's given; both outputs count."""
    directions = 2 if direction == "bidirectional" else 1
    if "Relu" in attributes:
        attributes = attributes.replace('"Relu"', ", ".join(['"Relu"'] * directions))
    states = "h" if operator != "LSTM" else "h, h"
    text = (
        "t = Transpose<perm = [1, 0, 2]>(x) n = Shape<start = 0, end = 1>(x) "
        "s = Concat<axis = 0>(d, n, hidden) h = Expand(half, s) "
        f'r, f = {operator}<hidden_size = 2, direction = "{direction}"{attributes}>(t, w, u, b, , {states}) '
        "m = ReduceMean<axes = [0], keepdims = 0>(r) e = Add(m, f) y = Transpose<perm = [1, 0, 2]>(e)"
    )
    draw = np.random.default_rng(0).normal
    constants = {
        "d": np.array([directions]), "hidden": np.array([2]), "half": np.float32([0.5]),
        "w": draw(size=(directions, gates * 2, 4)).astype(np.float32),
        "u": draw(size=(directions, gates * 2, 2)).astype(np.float32),
        "b": draw(size=(directions, gates * 4)).astype(np.float32),
    }  # fmt: skip
    check(tmp_path, text, **constants)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r, y = GRU<hidden_size = 2>(x, w, u)", "reset gate"),
        (
            'r, y = GRU<hidden_size = 2, linear_before_reset = 1, activations = ["Relu", "Tanh"]>(x, w, u)',
            "activations",
        ),
        ("r, y = GRU<hidden_size = 2, linear_before_reset = 1, clip = 0.5>(x, w, u)", "clip"),
    ],
)
def test_what_no_kernel_computes_is_refused(tmp_path: Path, text: str, message: str) -> None:
    draw = np.random.default_rng(0).normal
    constants = {"w": draw(size=(1, 6, 4)).astype(np.float32), "u": draw(size=(1, 6, 2)).astype(np.float32)}
    with pytest.raises(NotImplementedError, match=message):
        check(tmp_path, text, **constants)


@pytest.mark.parametrize("axes", ["", "batch_axis = 0, time_axis = 1"])
def test_reverse_sequence(tmp_path: Path, axes: str) -> None:
    """Over the axis of four with a length for each row of three, whichever comes first."""
    order = "[2, 1, 0]" if not axes else "[1, 2, 0]"
    back = "[2, 1, 0]" if not axes else "[2, 0, 1]"
    call = f"ReverseSequence<{axes}>(t, ends)" if axes else "ReverseSequence(t, ends)"
    check(
        tmp_path,
        f"t = Transpose<perm = {order}>(x) r = {call} y = Transpose<perm = {back}>(r)",
        ends=np.array([4, 3, 1]),
    )


def test_loops_of_known_length(tmp_path: Path) -> None:
    """The condition ends it after three of five rounds; rows are stacked."""
    body = (
        "body = b (int64 i, bool c, int64 n, float[batch, 3, 4] s) => (bool o, int64 m, float[batch, 3, 4] q, "
        "float[batch, 3, 4] row) { m = Add(n, one) o = Less(m, three) q = Mul(s, two) row = Relu(q) }"
    )
    text = f"k, z, rows = Loop<{body}>(five, yes, zero, x) p = ReduceSum<keepdims = 0>(rows, a0) y = Add(z, p)"
    constants = {
        "one": np.array(1), "three": np.array(3), "two": np.float32(2), "five": np.array(5), "yes": np.array(True),
        "zero": np.array(0), "a0": np.array([0]),
    }  # fmt: skip
    check(tmp_path, text, **constants)


def test_names_that_saved_programs_separate_by(tmp_path: Path) -> None:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[batch, 3] x) => (float[batch, 2] y) { y = MatMul(x, w) }'
    )
    proto.graph.node[0].name = "a;b,c (d)"
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((3, 2), np.float32), "w"))
    onnx.save(proto, tmp_path / "net.onnx")
    step = converter("onnx2torch")
    name = step.convert(small.model_of("onnx", tmp_path / "net.onnx"), tmp_path, step.complete({}))
    target = TorchRunnable(small.model_of("torch", tmp_path / name))
    (result,) = target.run({target.inputs[0].name: np.ones((4, 3), np.float32)}).values()
    np.testing.assert_array_equal(result, np.full((4, 2), 3, np.float32))
