"""Each rewrite says the same in other operators, and leaves alone what it can't say."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import parser

from conrepair.formats.onnx.passes.rewrites.all_rewrites import REWRITES, rewrites_named
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.onnx_session import open_session

_WEIGHT = "float[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[4] b = {1, -2, 3, -4}"
_CHANNELS = "float[1, 2, 1, 1] k = {2, -3}, float[2, 1, 1] c = {0.5, 4}, float s = {7}"
_NORM, _PADDED = "BatchNormalization", ("Pad", "AveragePool")
_CLASSES = "int64 n = {5}, int64[1] m = {5}, float[2] v = {-1, 2}"


def rewritten(name: str, shape: str, text: str, opset: int = 17, constants: str = "") -> tuple[str, ...]:
    """The operators after a rewrite, in order; the result is compared."""
    head = f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[{shape}] x) => (y)'
    proto = parser.parse_model(f"{head} {f'<{constants}>' if constants else ''} {{ {text} }}")
    model = onnx_ir.from_proto(proto)
    infer_shapes(model)
    REWRITES[name](model)
    after = onnx_ir.to_proto(model)
    onnx.checker.check_model(after)
    sizes = [3 if size.strip() == "n" else int(size) for size in shape.split(",")]
    feeds = {"x": np.random.default_rng(0).normal(size=sizes).astype(np.float32)}
    one, two = (open_session(item.SerializeToString()).run(None, feeds)[0] for item in (proto, after))
    assert (one.shape, one.dtype) == (two.shape, two.dtype)
    np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6)
    return tuple(node.op_type for node in after.graph.node)


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("p = MatMul (x, w) y = Add (p, b)", ("Gemm",)),
        ("p = MatMul (x, w) y = Add (b, p)", ("Gemm",)),
        ("y = MatMul (x, w)", ("Gemm",)),
        ("p = MatMul (x, w) a = Add (p, b) y = Sub (a, p)", ("Gemm", "Add", "Sub")),  # the product is read twice
    ],
)
def test_gemm(text: str, operators: tuple[str, ...]) -> None:
    assert rewritten("gemm", "n, 3", text, constants=_WEIGHT) == operators


def test_gemm_is_for_rows() -> None:
    assert rewritten("gemm", "n, 2, 3", "y = MatMul (x, w)", constants=_WEIGHT) == ("MatMul",)


@pytest.mark.parametrize(
    ("text", "opset", "operators"),
    [
        ("y = GlobalAveragePool (x)", 17, ("AveragePool",)),
        ("y = GlobalMaxPool (x)", 17, ("MaxPool",)),
        ("y = ReduceMean <axes = [2, 3]> (x)", 13, ("AveragePool",)),
        ("y = ReduceMean <keepdims = 0> (x, a)", 18, ("AveragePool", "Flatten")),
        ("y = ReduceMean <axes = [1, 2], keepdims = 0> (x)", 13, ("Transpose", "AveragePool", "Flatten")),
        ("y = ReduceMean <axes = [1, 2]> (x)", 13, ("ReduceMean",)),
        ("y = ReduceMean <axes = [0, 1], keepdims = 0> (x)", 13, ("ReduceMean",)),
    ],
)
def test_global_pool(text: str, opset: int, operators: tuple[str, ...]) -> None:
    axes = "int64[2] a = {-1, -2}" if opset == 18 else ""
    assert rewritten("global-pool", "n, 2, 5, 4", text, opset, axes) == operators


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("p = GlobalAveragePool (x) y = Squeeze (p, a)", ("GlobalAveragePool", "Flatten")),
        ("y = Reshape (x, t)", ("Flatten",)),
        ("y = Reshape (x, u)", ("Reshape",)),
        ("y = Flatten <axis = 0> (x)", ("Reshape",)),
        ("y = Flatten <axis = 2> (x)", ("Flatten",)),
    ],
)
def test_flatten(text: str, operators: tuple[str, ...]) -> None:
    constants = "int64[2] a = {2, 3}, int64[2] t = {-1, 40}, int64[2] u = {-1, 20}"
    assert rewritten("flatten", "n, 2, 5, 4", text, constants=constants) == operators


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("p = Mul (x, k) y = Add (p, c)", (_NORM,)),
        ("p = Sub (x, c) y = Div (p, k)", (_NORM,)),
        ("y = Add (s, x)", (_NORM,)),
        ("y = Sub (c, x)", ("Sub",)),
        ("p = Mul (x, k) q = Relu (p) r = Add (p, c) y = Add (q, r)", (_NORM, "Relu", _NORM, "Add")),
    ],
)  # fmt: skip
def test_affine(text: str, operators: tuple[str, ...]) -> None:
    assert rewritten("affine", "n, 2, 5, 4", text, constants=_CHANNELS) == operators


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        ("y = MaxPool <kernel_shape = [3, 3], pads = [2, 2, 2, 2]> (x)", ("Pad", "MaxPool")),
        ("y = AveragePool <kernel_shape = [2, 2], pads = [0, 0, 1, 1], count_include_pad = 1> (x)", _PADDED),
        ("y = AveragePool <kernel_shape = [2, 2], pads = [0, 1, 1, 0]> (x)", (*_PADDED, *_PADDED, "Div")),
        ("y = MaxPool <kernel_shape = [3, 3]> (x)", ("MaxPool",)),
    ],
)  # fmt: skip
def test_pool_padding(text: str, operators: tuple[str, ...]) -> None:
    assert rewritten("pool-padding", "n, 2, 5, 4", text) == operators


@pytest.mark.parametrize(
    "text",
    [
        'y = DepthToSpace <blocksize = 2, mode = "DCR"> (x)',
        'y = DepthToSpace <blocksize = 2, mode = "CRD"> (x)',
        "y = SpaceToDepth <blocksize = 2> (x)",
    ],
)
def test_depth_to_space(text: str) -> None:
    assert rewritten("depth-to-space", "n, 8, 6, 4", text) == ("Reshape", "Transpose", "Reshape")


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("i = ArgMax <axis = 1> (x) y = OneHot (i, n, v)", "Where"),
        ("i = ArgMax <axis = 1, keepdims = 0> (x) o = Sub (i, n) y = OneHot <axis = 1> (o, m, v)", "Where"),
        ("y = Hardmax <axis = 1> (x)", "Where"),
    ],
)
def test_one_hot(text: str, last: str) -> None:
    assert rewritten("one-hot", "n, 5, 4", text, constants=_CLASSES)[-1] == last


def test_lp_pool() -> None:
    text = "y = LpPool <kernel_shape = [2, 3], strides = [2, 1], pads = [1, 0, 0, 1]> (x)"
    assert rewritten("lp-pool", "n, 2, 5, 4", text)[-1] == "Sqrt"
    assert rewritten("lp-pool", "n, 2, 5, 4", "y = LpPool <kernel_shape = [2, 3], p = 1> (x)") == ("LpPool",)


def test_defaults() -> None:
    text = "p = MaxPool <kernel_shape = [2, 2]> (x) y = Softmax (p)"
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2, 5, 4] x) => (y) {{ {text} }}'
    )
    model = onnx_ir.from_proto(proto)
    infer_shapes(model)
    REWRITES["defaults"](model)
    pool, softmax = model.graph
    assert list(pool.attributes["strides"].as_ints()) == [1, 1]
    assert softmax.attributes["axis"].as_int() == -1
    assert rewritten("defaults", "n, 2, 5, 4", text) == ("MaxPool", "Softmax")


def test_a_name_that_is_not_known() -> None:
    with pytest.raises(ConfigError, match="did you mean 'gemm'"):
        rewrites_named(["gem"])
