"""What two files prove: the same network in other words, whatever the words; and never another network."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.defs import OpSchema
from onnx_networks import drawn, written
from rewritten_networks import opened

from conrepair.ground.canonical.pieces import Cut, Pieces, Proven
from conrepair.ground.graph.layer_graph import Array, LayerGraph
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.onnx_session import open_session

HEAD = "small (float[2, 3, 6, 6] x) => (float[n, m, k, l] y) "
ROWS = "small (float[2, 5, 8] x) => (float[n, m, k] y) "
KERNEL = {"w": drawn(4, 3, 3, 3, seed=1), "b": drawn(4, seed=2)}
NORM = {
    "g": drawn(4, seed=3) + 1,
    "h": drawn(4, seed=4),
    "m": drawn(4, seed=5),
    "v": np.abs(drawn(4, seed=6)) + np.float32(0.5),
}
FACTOR = NORM["g"].astype(np.float64) / np.sqrt(NORM["v"].astype(np.float64) + 1e-5)
FOLDED = {
    "w": np.float32(KERNEL["w"] * FACTOR[:, None, None, None]),
    "b": np.float32((KERNEL["b"] - NORM["m"]) * FACTOR + NORM["h"]),
}
SCALE, SHIFT = drawn(8, seed=7) + 1, drawn(8, seed=8)
LAYER_NORM = "{ y = LayerNormalization (x, s, t) }"
NUMBERS = {"two": 2.0, "half": 0.5, "one": 1.0, "three": 3.0, "six": 6.0, "root": 2.0**0.5, "zero": 0.0, "tiny": 1e-5}
GELU = "{ d = Div (x, root) e = Erf (d) f = Add (e, one) "

SAME = {
    "bounds": (
        ROWS + "{ y = Clip (x, under, over) }",
        ROWS + "{ a = Min (x, over) y = Max (a, under) }",
        {"under": np.float32(-3), "over": np.float32(3)},
        {"under": np.float32(-3), "over": np.float32(3)},
    ),
    "batch-normalization": (
        HEAD + "{ c = Conv (x, w, b) y = BatchNormalization (c, g, h, m, v) }",
        HEAD + "{ y = Conv (x, w, b) }",
        {**KERNEL, **NORM},
        FOLDED,
    ),
    "gelu": (ROWS + GELU + "p = Mul (x, f) y = Mul (p, half) }", ROWS + GELU + "h = Mul (x, half) y = Mul (h, f) }"),
    "groups": (
        HEAD + "{ c = Conv (x, w, b) y = GroupNormalization <num_groups = 2> (c, g, h) }",
        HEAD + "{ c = Conv (x, w, b) r = Reshape (c, grouped) i = InstanceNormalization (r, ones, zeros) "
        "n = Reshape (i, apart) p = Mul (n, q) y = Add (p, u) }",
        {**KERNEL, "g": NORM["g"], "h": NORM["h"]},
        {
            **KERNEL,
            "grouped": np.array([2, 2, -1]),
            "apart": np.array([2, 4, 4, 4]),
            "ones": np.ones(2, np.float32),
            "zeros": np.zeros(2, np.float32),
            "q": NORM["g"].reshape(4, 1, 1),
            "u": NORM["h"].reshape(4, 1, 1),
        },
    ),
    "hard-swish": (
        ROWS + "{ y = HardSwish (x) }",
        ROWS + "{ a = Add (x, three) c = Clip (a, zero, six) p = Mul (x, c) y = Div (p, six) }",
    ),
    "layer-normalization": (
        ROWS + LAYER_NORM,
        ROWS + "{ a = ReduceMean <axes = [-1]> (x) d = Sub (x, a) q = Pow (d, two) u = ReduceMean <axes = [-1]> (q) "
        "e = Add (u, tiny) r = Sqrt (e) n = Div (d, r) z = Mul (n, s) y = Add (z, t) }",
    ),
    "moved-back": (
        ROWS + "{ a = Transpose <perm = [0, 2, 1]> (x) r = Relu (a) y = Transpose <perm = [0, 2, 1]> (r) }",
        ROWS + "{ y = Relu (x) }",
    ),
    "pads": (
        HEAD + "{ p = Pad (x, around) y = Conv (p, w, b) }",
        HEAD + "{ y = Conv <pads = [1, 1, 1, 1]> (x, w, b) }",
        {**KERNEL, "around": np.array([0, 0, 1, 1, 0, 0, 1, 1])},
        KERNEL,
    ),
    "pointwise": (
        HEAD + "{ y = Conv (x, k) }",
        HEAD
        + "{ a = Transpose <perm = [0, 2, 3, 1]> (x) p = MatMul (a, k) y = Transpose <perm = [0, 3, 1, 2]> (p) }",
        {"k": drawn(4, 3, 1, 1)},
        {"k": drawn(4, 3, 1, 1).reshape(4, 3).T},
    ),
    "product-in-parts": (
        ROWS + "{ p = MatMul (x, k) a, b = Split <axis = 2> (p, sizes) y = Mul (a, b) }",
        ROWS + "{ a = MatMul (x, left) b = MatMul (x, right) y = Mul (a, b) }",
        {"k": drawn(8, 6), "sizes": np.array([3, 3])},
        {"left": drawn(8, 6)[:, :3], "right": drawn(8, 6)[:, 3:]},
    ),
    "softmax": (
        ROWS + "{ y = Softmax <axis = 2> (x) }",
        ROWS + "{ a = ReduceMax <axes = [2]> (x) d = Sub (x, a) e = Exp (d) z = ReduceSum (e, last) y = Div (e, z) }",
    ),
}
OTHER = {
    "bias": (HEAD + "{ y = Conv (x, w, b) }", None, KERNEL, {**KERNEL, "b": KERNEL["b"] + np.float32(1e-4)}),
    "bound": (ROWS + "{ y = Clip (x, zero, six) }", ROWS + "{ y = Clip (x, zero, three) }"),
    "dropped-bound": (ROWS + "{ y = Clip (x, zero, six) }", ROWS + "{ y = Relu (x) }"),
    "epsilon": (ROWS + LAYER_NORM, ROWS + "{ y = LayerNormalization <epsilon = 0.001> (x, s, t) }"),
    "exchanged": (ROWS + "{ a = Exp (x) y = Sub (x, a) }", ROWS + "{ a = Exp (x) y = Sub (a, x) }"),
    "hidden-by-infinity": (
        ROWS + "{ y = Max (x, floor) }",
        None,
        {"floor": np.array([-np.inf] * 7 + [0], np.float32)},
        {"floor": np.array([-np.inf] * 8, np.float32)},
    ),
    "other-rows": (
        ROWS + "{ y = Reshape (x, shape) }",
        ROWS + "{ a = Transpose <perm = [0, 2, 1]> (x) y = Reshape (a, shape) }",
    ),
    "bounds-that-cross": (
        ROWS + "{ a = Min (x, low) y = Max (a, high) }",
        ROWS + "{ a = Max (x, high) y = Min (a, low) }",
        {"low": np.float32(-1), "high": np.float32(1)},
        {"low": np.float32(-1), "high": np.float32(1)},
    ),
    "large-number": (
        ROWS + "{ a = Add (x, much) y = Sub (a, less) }",
        None,
        {"much": np.float32(1000001), "less": np.float32(1000000)},
        {"much": np.float32(1000000), "less": np.float32(1000000)},
    ),
    "slopes": (ROWS + "{ y = PRelu (x, s) }", None, {"s": SCALE}, {"s": SCALE[::-1]}),
    "square-of-root": (ROWS + "{ r = Sqrt (x) y = Mul (r, r) }", ROWS + "{ y = Identity (x) }"),
    "computed-scale": (
        ROWS + "{ a = ReduceMax <axes = [0, 1], keepdims = 0> (x) y = LayerNormalization (x, a) }",
        ROWS + "{ a = ReduceMin <axes = [0, 1], keepdims = 0> (x) y = LayerNormalization (x, a) }",
    ),
    "root-of-square": (ROWS + "{ q = Mul (x, x) y = Sqrt (q) }", ROWS + "{ y = Identity (x) }"),
    "by-itself": (ROWS + "{ a = Div (x, x) y = Mul (a, x) }", ROWS + "{ y = Identity (x) }"),
    "one-weight": (
        HEAD + "{ y = Conv (x, w, b) }",
        None,
        KERNEL,
        {**KERNEL, "w": np.where(np.arange(108).reshape(4, 3, 3, 3) == 50, np.float32(1e-3), 1) * KERNEL["w"]},
    ),
}
USUAL: dict[str, Array] = {
    **{name: np.array(number, np.float32) for name, number in NUMBERS.items()},
    "s": SCALE,
    "t": SHIFT,
    "last": np.array([2]),
    "shape": np.array([2, 8, 5]),
}


def graphs(case: tuple[Any, ...], folder: Path) -> tuple[LayerGraph, LayerGraph]:
    one, two, *weights = case
    found = []
    for place, text in enumerate((one, two or one)):
        held = {name: np.asarray(item) for name, item in {**USUAL, **(weights[place] if weights else {})}.items()}
        used = {name: item for name, item in held.items() if name in text.replace(",", " ").replace(")", " ").split()}
        path = written(folder / f"{place}.onnx", text, used, opset=21 if "Group" in text else 17, ir_version=9)
        shape = (2, 3, 6, 6) if text.startswith(HEAD) else (2, 5, 8)
        found.append(opened(path, {"x": np.zeros(shape, np.float32)}).graph)
    return found[0], found[1]


def compared(source: LayerGraph, target: LayerGraph) -> Proven:
    def cut(one: str, two: str) -> Cut:
        shape = source.tensors[one].shape or ()
        return Cut(one, two, [(shape, range(len(shape)), shape)])

    inputs = [cut(*names) for names in zip(source.inputs, target.inputs, strict=True)]
    ends = [cut(*names) for names in zip(source.outputs, target.outputs, strict=True)]
    return Pieces(source, target).proven(inputs, ends)


@pytest.mark.parametrize("name", SAME)
def test_other_words_for_the_same(name: str, tmp_path: Path) -> None:
    source, target = graphs(SAME[name], tmp_path)
    for one, two in ((source, target), (target, source)):
        found = compared(one, two)
        assert all(found.ends)
        assert (found.rounding > 0) == (name == "batch-normalization")
        assert found.rounding < 1e-6


@pytest.mark.parametrize("name", OTHER)
def test_another_network(name: str, tmp_path: Path) -> None:
    source, target = graphs(OTHER[name], tmp_path)
    for one, two in ((source, target), (target, source)):
        assert not any(compared(one, two).ends)


VARIED = (
    *("AveragePool", "BatchNormalization", "Concat", "Conv", "ConvTranspose", "Elu", "Gather", "Gelu", "Gemm"),
    *("HardSigmoid", "InstanceNormalization", "LayerNormalization", "LeakyRelu", "LRN", "MaxPool", "Pad"),
    *("ReduceMean", "Resize", "Softmax", "Transpose"),
)
WORDS = {
    "mode": ("nearest", "linear", "cubic", "constant", "reflect", "edge", "DCR", "CRD"),
    "auto_pad": ("SAME_UPPER", "SAME_LOWER", "VALID"),
    "coordinate_transformation_mode": ("asymmetric", "half_pixel", "align_corners"),
    "nearest_mode": ("floor", "ceil"),
    "approximate": ("tanh", "none"),
    "direction": ("reverse",),
}


def changed(node: onnx.NodeProto, schema: OpSchema) -> Iterator[onnx.AttributeProto]:
    """Each attribute of an operator with other values than a node has."""
    said = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    for name, about in schema.attributes.items():
        value = said.get(name, helper.get_attribute_value(about.default_value) if about.default_value.name else None)
        others: list[Any] = []
        match about.type:
            case OpSchema.AttrType.INT:
                others = [1 - value] if value in {0, 1} and name != "group" else [(value or 0) + 1]
            case OpSchema.AttrType.FLOAT:
                others = [0.25, 1.5]
            case OpSchema.AttrType.STRING:
                others = list(WORDS.get(name, ()))
            case OpSchema.AttrType.INTS if value:
                more = [[*value[:place], value[place] + 1, *value[place + 1 :]] for place in range(len(value))]
                others = [*more, list(reversed(value))]
        yield from (helper.make_attribute(name, other) for other in others)


def results(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array] | None:
    try:
        found = open_session(model.SerializeToString()).run(None, dict(feeds))
    # onnxruntime raises one class per status code, without a common base of their own.
    except Exception:  # noqa: BLE001
        return None
    return [np.asarray(array) for array in found]


@functools.cache
def all_cases() -> list[Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(collect_testcases(None))


def cases(operator: str) -> Iterator[tuple[onnx.ModelProto, dict[str, Array]]]:
    """ONNX's own cases, with all inputs but the first one as parameters."""
    for case in all_cases():
        model, (arrays, _) = copy.deepcopy(case.model), case.data_sets[0]
        if [node.op_type for node in model.graph.node] != [operator]:
            continue
        inputs = [value.name for value in model.graph.input]
        if not all(isinstance(array, np.ndarray) for array in arrays):
            continue
        feeds = dict(zip(inputs, arrays, strict=False))
        model.graph.initializer.extend(
            numpy_helper.from_array(feeds[name], name) for name in inputs[1:] if name in feeds
        )
        del model.graph.input[1:]
        yield model, {inputs[0]: feeds[inputs[0]]}


@pytest.mark.parametrize("operator", VARIED)
def test_an_attribute_that_changes_what_is_computed_is_seen(operator: str, tmp_path: Path) -> None:
    """Of ONNX's cases, each attribute changed: what is proven to be the same gives the same."""
    count = 0
    for model, feeds in cases(operator):
        expected = results(model, feeds)
        if expected is None:
            continue
        onnx.save(model, tmp_path / "model.onnx")
        source = opened(tmp_path / "model.onnx", feeds).graph
        opset = next(item.version for item in model.opset_import if item.domain in {"", "ai.onnx"})
        learns = any(item.name == "training_mode" for item in model.graph.node[0].attribute)
        assert learns or all(compared(source, source).ends), model.graph.name
        for attribute in changed(model.graph.node[0], onnx.defs.get_schema(model.graph.node[0].op_type, opset, "")):
            other = copy.deepcopy(model)
            (node,) = other.graph.node
            kept = [item for item in node.attribute if item.name != attribute.name]
            del node.attribute[:]
            node.attribute.extend([*kept, attribute])
            for value in other.graph.output:
                value.type.tensor_type.ClearField("shape")
            given = results(other, feeds)
            if given is None:
                continue
            onnx.save(other, tmp_path / "other.onnx")
            try:
                target = opened(tmp_path / "other.onnx", feeds).graph
            except ConrepairError:
                continue
            alike = len(target.outputs) == len(source.outputs) and all(
                one.shape == two.shape and np.allclose(one, two, 1e-4, 1e-5, equal_nan=True)
                for one, two in zip(expected, given, strict=True)
            )
            if len(target.outputs) != len(source.outputs):
                continue
            shown = all(compared(source, target).ends)
            assert alike or not shown, f"{model.graph.name}: {attribute}"
            count += not alike
    assert count, f"no attribute of {operator} changed anything"
