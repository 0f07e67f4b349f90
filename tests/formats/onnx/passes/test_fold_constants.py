"""Folding: what is constant is computed, what isn't stays, and results are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import helper, numpy_helper, parser

from conrepair.formats.onnx.passes.fold_constants import fold_constants
from conrepair.formats.onnx.passes.fold_shapes import fold_shapes
from conrepair.ground.onnx_graphs.remove_unused import remove_unused
from conrepair.ground.runtime.onnx_session import open_session

DATA = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


def graph_of(text: str, opset: int = 17, **constants: Any) -> onnx.ModelProto:
    """From x (float32 [batch, 3, 4]) to y, with nodes in ONNX's text format."""
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[batch, 3, 4] x) => (y) {{ {text} }}'
    )
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return onnx.shape_inference.infer_shapes(proto)


def after(proto: onnx.ModelProto, *passes: Any) -> onnx.ModelProto:
    """Apply passes; the outputs must stay the same, for two sizes of batch."""
    model = onnx_ir.from_proto(proto)
    for step in [*passes, remove_unused]:
        step(model)
    result = onnx_ir.to_proto(model)
    onnx.checker.check_model(result)
    for data in (DATA, DATA[:1]):
        one, two = (open_session(item.SerializeToString()).run(None, {"x": data}) for item in (proto, result))
        np.testing.assert_array_equal(one[0], two[0])
    return result


def operators(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


def test_chains_of_constants_are_computed() -> None:
    proto = graph_of("a = Exp(w) b = Transpose(a) y = Add(x, b)", w=np.eye(4, 3, dtype=np.float32))
    result = after(proto, fold_constants)
    assert operators(result) == ["Add"]
    (constant,) = result.graph.initializer
    np.testing.assert_allclose(numpy_helper.to_array(constant), np.exp(np.eye(3, 4)), rtol=1e-6)


def test_constant_nodes_become_initializers() -> None:
    result = after(graph_of("c = Constant<value_float = 2.0>() y = Mul(x, c)"), fold_constants)
    assert operators(result) == ["Mul"]
    assert len(result.graph.initializer) == 1


def test_an_output_can_be_constant() -> None:
    proto = graph_of("z = Relu(x) y = Exp(w)", w=np.ones(2, np.float32))
    result = after(proto, fold_constants)
    assert "Exp" not in operators(result)


def test_several_outputs_of_one_node() -> None:
    proto = graph_of(
        "a, b = Split<axis = 0>(w) c = Add(x, a) y = Mul(c, b)", w=np.arange(8, dtype=np.float32).reshape(2, 4)
    )
    assert operators(after(proto, fold_constants)) == ["Add", "Mul"]


@pytest.mark.parametrize(
    "text",
    [
        "n = RandomNormal<shape = [4]>() s = Sub(n, n) y = Add(x, s)",
        "q = DequantizeLinear(w, s, z) y = Mul(x, q)",
    ],
    ids=["random", "quantized"],
)
def test_what_is_meant_to_stay_stays(text: str) -> None:
    constants = {"w": np.array([1, 2, 3, 4], np.uint8), "s": np.float32(0.5), "z": np.uint8(1)}
    proto = graph_of(text, **{key: value for key, value in constants.items() if "Dequantize" in text})
    assert operators(after(proto, fold_constants)) == operators(proto)


def test_large_results_stay_computed() -> None:
    """A shape is a few bytes, what it's filled to may be gigabytes."""
    proto = graph_of("c = ConstantOfShape(s) m = ReduceMax<keepdims = 0>(c) y = Add(x, m)", s=np.array([5000, 1000]))
    assert "ConstantOfShape" in operators(after(proto, fold_constants))


def test_subgraphs_that_read_a_constant_still_do() -> None:
    result = helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, None)
    then = helper.make_graph([helper.make_node("Add", ["x", "a"], ["r"])], "then", [], [result])
    other = helper.make_graph([helper.make_node("Sub", ["x", "a"], ["r"])], "else", [], [result])
    proto = graph_of("a = Exp(w) y = Relu(x)", w=np.ones(4, np.float32))
    proto.graph.node.pop()
    proto.graph.node.append(helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=other))
    proto.graph.initializer.append(numpy_helper.from_array(np.array(True), "yes"))
    assert operators(after(proto, fold_constants)) == ["If"]


def test_shapes_that_are_known() -> None:
    proto = graph_of(
        "r = Relu(x) s = Shape<start = 1>(r) p = ReduceProd<keepdims = 0>(s) f = Cast<to = 1>(p) y = Add(x, f)"
    )
    assert operators(after(proto, fold_constants)) == ["Add"]


# --- Shapes with a symbolic batch ---


def test_a_flatten_of_exporters() -> None:
    """x.reshape(x.shape[0], -1) as PyTorch's older exporter writes it."""
    proto = graph_of(
        "s = Shape(x) b = Gather(s, zero) u = Unsqueeze(b, axes) n = Concat<axis = 0>(u, rest) y = Reshape(x, n)",
        zero=np.array(0), axes=np.array([0]), rest=np.array([12]),
    )  # fmt: skip
    result = after(proto, fold_shapes)
    (target,) = (item for item in result.graph.initializer if item.name in result.graph.node[-1].input)
    assert numpy_helper.to_array(target).tolist() == [-1, 12]


def test_known_sizes_of_a_shape_with_a_symbol() -> None:
    """Halves of the channels, whose number is known although the batch's isn't."""
    proto = graph_of(
        "s = Shape(x) c = Gather(s, two) h = Div(c, c2) e = Unsqueeze(h, axes) y = Slice(x, start, e, last)",
        two=np.array(2), c2=np.array(2), axes=np.array([0]), start=np.array([0]), last=np.array([2]),
    )  # fmt: skip
    result = after(proto, fold_shapes)
    ends = {item.name: numpy_helper.to_array(item) for item in result.graph.initializer}
    assert ends[result.graph.node[-1].input[2]].tolist() == [2]


def test_sizes_from_the_last_on() -> None:
    proto = graph_of(
        "s = Shape(x) r = Slice(s, last, front, axes, step) y = Reshape(x, r)",
        last=np.array([-1]), front=np.array([-9]), axes=np.array([0]), step=np.array([-1]),
    )  # fmt: skip
    result = after(proto, fold_shapes)
    (target,) = (item for item in result.graph.initializer if item.name in result.graph.node[-1].input)
    assert numpy_helper.to_array(target).tolist() == [4, 3, -1]


def test_two_unknown_sizes_stay_computed() -> None:
    proto = graph_of("s = Shape(x) t = Concat<axis = 0>(s, one) y = Reshape(x, t)", one=np.array([1]))
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "length"
    result = after(proto, fold_shapes)
    assert result.graph.node[-1].input[1] == "t"


def test_a_minus_one_that_is_there_stays() -> None:
    """The batch can't become -1 beside another."""
    proto = graph_of(
        "s = Shape(x) b = Slice(s, zero, one) n = Concat<axis = 0>(b, rest) y = Reshape(x, n)",
        zero=np.array([0]), one=np.array([1]), rest=np.array([-1]),
    )  # fmt: skip
    assert after(proto, fold_shapes).graph.node[-1].input[1] == "n"
