"""Networks of the table of verdicts; what each is called with tells a target from its source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_networks
from localized import WEIGHTS, Variant
from onnx import TensorProto, helper, numpy_helper
from onnx_networks import written

Make = Callable[..., Any]
AS_IT_IS = "y = Reshape (m, sizes)"


def columns(
    path: Path, *, end: str = AS_IT_IS, shape: str = "3, 8", wrong: float = 1.0, reordered: bool = False
) -> Path:
    """Columns of 1e6 beside columns of 1; hidden units in another order give other roundings."""
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(8, 16)), generator.normal(size=(16, 3, 8))
    second[..., 0] *= 1e6
    second[..., 5] *= wrong
    order = generator.permutation(16) if reordered else np.arange(16)
    text = f"""g (float[N, 8] x) => (float[N, {shape}] y) <int64[3] sizes = {{-1, 3, 8}}> {{
        h = MatMul (x, first) a = Tanh (h) m = MatMul (a, second) {end} }}"""
    arrays = {"first": first[:, order], "second": second[order].reshape(16, 24)}
    return written(path, text, {name: array.astype(np.float32) for name, array in arrays.items()}, 13, 8)


def classes(path: Path, *, end: str = "Identity") -> Path:
    """Scores of fifty classes, or their probabilities."""
    text = f"g (float[N, 8] x) => (float[N, 50] y) {{ h = MatMul (x, w) y = {end} (h) }}"
    return written(path, text, {"w": onnx_networks.drawn(8, 50, scale=1.0)}, ir_version=8)


def turned_pictures(path: Path, *, perm: list[int] | None = None) -> Path:
    """A small network of pictures with the channels first, or last and transposed by the network itself."""
    first = "" if perm is None else f"t = Transpose <perm = {perm}> (x)"
    sizes, given = ("3, 12, 12", "x") if perm is None else ("12, 12, 3", "t")
    text = f"""g (float[N, {sizes}] x) => (float[N, 4] y) {{
        {first}
        c = Conv <strides = [2, 2], pads = [1, 0, 1, 0]> ({given}, kernel)
        r = Relu (c) p = GlobalAveragePool (r) f = Flatten (p) y = MatMul (f, dense) }}"""
    generator = np.random.default_rng(0)
    shapes = {"kernel": (6, 3, 3, 3), "dense": (6, 4)}
    arrays = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return written(path, text, arrays, 13, 8)


def image_network(path: Path, **factors: float) -> str:
    """The small network of pictures, with some weights scaled."""
    weights = {name: WEIGHTS[name] * np.float32(factor) for name, factor in factors.items()}
    return Variant(weights=weights).write(path).path


def convolution(path: Path, *, scale: float = 1.0, layout: str = "NCHW") -> Path:
    """A convolution, a ReLU and a mean over the picture: float32 [batch, 3, 9, 6] to [batch, 4]."""
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32) * np.float32(scale)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["y"], axes=[2, 3], keepdims=0),
    ]
    shape = ["batch", 3, 9, 6]
    if layout == "NHWC":
        nodes.insert(0, helper.make_node("Transpose", ["image"], ["x"], perm=[0, 3, 1, 2]))
        shape = ["batch", 9, 6, 3]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x" if layout == "NCHW" else "image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return path


def convolution_or_script(path: Path, *, layout: str = "NCHW", script: float = 0.0) -> Path:
    """The convolution, or TorchScript of it with scaled weights, which doesn't say what its inputs are."""
    import torch
    from torch import nn

    convolution(path, layout=layout)
    if not script:
        return path
    weights = numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    with torch.no_grad():
        network[0].weight.copy_(torch.from_numpy(weights * np.float32(script)))
    torch.jit.trace(network, torch.zeros(2, 3, 9, 6)).save(path.with_suffix(".pt"))
    return path.with_suffix(".pt")


ODD_NETWORKS = {
    "an output without rows": "(float[5,4] x) => (float[1,1] y, float[5,4] z) { y = ReduceSum (x) z = Relu (x) }",
    "rows of other outputs": "(float[6,4] x) => (float[3,8] y) <int64[2] s = {3, 8}> { y = Reshape (x, s) }",
    "a constant output": """(float[2,3] x) => (float[2,3] z, float[2] y) <float[2] k = {1, -2}> {
        z = Relu (x) y = Abs (k) }""",
    "a stored output": "(float[2,3] x) => (float[2,3] z, float[2] k) <float[2] k = {1, -2}> { z = Relu (x) }",
    "numbers without axes": """(float t, float[3] x) => (float y, float[3] z) {
        m = ReduceMax <keepdims = 0> (x) y = Mul (m, t) z = Relu (x) }""",
    "a divisor with axes": "(int64[7,4] x) => (int64[7,4] y) <int64[1] k = {-7}> { y = Div (x, k) }",
    "rounding that decides a size": """(float[40] x) => (float[40] z, float[?] y) {
        d = Add (x, x) t = Add (d, x) q = Sin (x) u = Asin (q) c = Greater (u, x)
        y = Compress (t, c) z = Relu (t) }""",
}
"""Networks that no exporter writes, but chance does."""


def odd_network(path: Path, *, case: str, old: str = "", new: str = "") -> Path:
    """One of them, with something written otherwise."""
    return written(path, f"net {ODD_NETWORKS[case].replace(old, new) if old else ODD_NETWORKS[case]}", {}, 18)


def overlapping(path: Path, *, overlap: float) -> Path:
    """Boxes of which each sample has its own number, behind an axis of samples."""
    drawn = onnx_networks.drawn
    text = """g (float[1, 16] x) => (float[1, found, 4] y) {
        flat = MatMul (x, w)
        pairs = Reshape (flat, shape)
        corner, side = Split <axis = 2> (pairs, two)
        far = Add (corner, size)
        boxes = Concat <axis = 2> (corner, far)
        scores = MatMul (x, v)
        all = Unsqueeze (scores, one)
        chosen = NonMaxSuppression (boxes, all, most, overlap, least)
        last = Gather <axis = 1> (chosen, place)
        y = Gather <axis = 1> (boxes, last)
    }"""
    weights: dict[str, npt.NDArray[Any]] = {
        "w": drawn(16, 240, seed=1), "v": drawn(16, 60, seed=2), "shape": np.array([1, 60, 4]),
        "two": np.array([2, 2]),
        "size": np.array(1, np.float32), "one": np.array([1]), "most": np.array([60]), "place": np.array(2),
        "overlap": np.array([overlap], np.float32), "least": np.array([-9], np.float32),
    }  # fmt: skip
    return written(path, text, weights)


_POOLED = """<ir_version: 8, opset_import: ["" : 17]>
net (int64[n, 8] ids, int64[n, 8] mask) => (float[n, 4] y) {{
    words = Gather (table, ids)
    seen = Cast <to = 1> (mask)
    {used}
    column = Unsqueeze (used, last)
    kept = Mul (words, column)
    sum = ReduceSum <keepdims = 0> (kept, first)
    count = ReduceSum <keepdims = 1> (seen, first)
    {guard}
    y = Div (sum, guarded)
}}"""
_FEATURES = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
net ({type}[n, 4] x{more}) => (float[n, 4] y) {{ {body} }}"""
NORM = "norm = ReduceL2 <axes = [1], keepdims = 1> (x) "
TREE = (
    "t = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], "
    'nodes_featureids = [1, 0, 0], nodes_values = [0.3, 0.0, 0.0], nodes_modes = ["{}", "LEAF", "LEAF"], '
    "nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], "
    "target_nodeids = [1, 2], target_ids = [0, 0], target_weights = [1.0, 2.0]> (x) y = Mul (t, ones)"
)
LOOKED_UP = (
    "u = ai.onnx.ml.LabelEncoder <keys_int64s = [3, 7, 19], values_floats = [1.0, 2.0, {}], default_float = 0.0> (x) "
    "y = Identity (u)"
)
PICTURES = """<ir_version: 8, opset_import: ["" : 17]>
net (float[n, 3, h, w] x) => (float[n, 3, oh, ow] y) {{
    y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], auto_pad = "{}"> (x)
}}"""


def pooled(*, lengths: bool = False, guard: str = "Max (count, one)") -> str:
    used = "used = Identity (seen)"
    if lengths:
        used = (
            "long = ReduceSum <keepdims = 1> (seen, first) below = Less (places, long) used = Cast <to = 1> (below)"
        )
    return _POOLED.format(used=used, guard=f"guarded = {guard}")


def features(body: str, kind: str = "float", more: str = "") -> str:
    return _FEATURES.format(type=kind, body=body, more=more)


def unusual(path: Path, *, text: str) -> Path:
    """A network of which only inputs of an unusual sort say what it does."""
    model = onnx.parser.parse_model(text)
    arrays: dict[str, npt.NDArray[np.generic]] = {
        "table": np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32),
        "last": np.array([-1]),
        "first": np.array([1]),
        "places": np.arange(8, dtype=np.float32)[None],
        "one": np.array(1, np.float32),
        "ones": np.ones(4, np.float32),
        "zero": np.array(0, np.float32),
        "half": np.array(0.5, np.float32),
        "three": np.array(3, np.float32),
        "tiny": np.array(1e-12, np.float32),
    }
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(arrays[name], name) for name in sorted(read & arrays.keys())
    )
    onnx.save(model, path)
    return path


def boxes_and_scores(path: Path, *, moved: float = 0.0) -> Path:
    """Boxes, which may be moved, and scores."""
    text = """two (float[batch, 4] x) => (float[batch, 3] boxes, float[batch, 3] scores) {
        plain = MatMul (x, of_boxes) boxes = Add (plain, shift) scores = MatMul (x, of_scores) }"""
    weights = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    arrays = {"of_boxes": weights[0], "of_scores": weights[1], "shift": np.array([10 + moved], np.float32)}
    return written(path, text, arrays)


_BATCHED = """net (float[batch, 2, 4] x) => (float[batch, 3] y) {
  flat = Reshape(x, first)
  hidden = MatMul(flat, w)
  active = Relu(hidden)
  back = Reshape(active, second)
  turned = Transpose <perm = [0, 2, 1]> (back)
  last = Reshape(turned, third)
  y = MatMul(last, v)
}"""
_SHAPES = {"first": [-1, 8], "second": [-1, 2, 3], "third": [-1, 6]}


def batched(path: Path, *, factor: float = 1.0, **shapes: list[int]) -> Path:
    """Its input leaves the batch open, which shapes may hold."""
    generator = np.random.default_rng(0)
    arrays: dict[str, npt.NDArray[Any]] = {"w": generator.normal(size=(8, 6)), "v": generator.normal(size=(6, 3))}
    arrays["v"][:, 1] *= factor
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
    arrays |= {name: np.array(shape, np.int64) for name, shape in (_SHAPES | shapes).items()}
    return written(path, _BATCHED, arrays, ir_version=8)


TIME = 6


def time_major(path: Path, *, time: str = "time", batch: str = "batch", factor: float = 1.0) -> Path:
    """A recurrent network whose inputs have their samples behind time steps or layers, its outputs elsewhere."""
    text = f"""net (float[{time}, {batch}, 4] x, float[1, {batch}, 8] h)
        => (float[{time}, 1, {batch}, 8] steps, float[1, {batch}, 3] y) {{
        steps, last = RNN <hidden_size = 8> (x, w, r, , , h)
        y = MatMul(last, v) }}"""
    generator = np.random.default_rng(0)
    shapes = {"w": (1, 8, 4), "r": (1, 8, 8), "v": (8, 3)}
    arrays = {name: generator.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    arrays["v"][..., 0] *= factor
    return written(path, text, arrays, ir_version=8)


def steps(*, inside: bool) -> dict[str, npt.NDArray[Any]]:
    """What it's fed, with the samples in front, or where the network has them."""
    generator = np.random.default_rng(1)
    arrays = {"x": generator.normal(size=(20, TIME, 4)), "h": generator.normal(size=(20, 1, 8))}
    return {name: (array.swapaxes(0, 1) if inside else array).astype(np.float32) for name, array in arrays.items()}
