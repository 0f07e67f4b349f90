"""Lowering the opset of a graph: equal results where it's possible, a refusal by name where it isn't."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import onnxruntime
import pytest
import small_models as small
from onnx import helper, numpy_helper

from conrepair.converters.onnx_opset import lower_opset
from conrepair.runtime.errors import ConversionError, ExitCode

FLOAT = onnx.TensorProto.FLOAT
NODE = helper.make_node
DATA = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)


def model(*nodes: onnx.NodeProto, opset: int, rank: int = 4, **constants: Any) -> onnx.ModelProto:
    """From "x" of shape [2, 3, 4, 5] to "y"."""
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info("x", FLOAT, [2, 3, 4, 5])],
        [helper.make_tensor_value_info("y", FLOAT, [f"size_{axis}" for axis in range(rank)])],
        tensors,
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def lowered(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    graph = onnx_ir.from_proto(proto)
    lower_opset(graph, opset)
    result = onnx_ir.to_proto(graph)
    onnx.checker.check_model(result, full_check=True)
    assert [(item.domain, item.version) for item in result.opset_import] == [("", opset)]
    return result


def run(proto: onnx.ModelProto) -> small.Array:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"x": DATA})
    return np.asarray(result)


def refusal(proto: onnx.ModelProto, opset: int) -> str:
    with pytest.raises(ConversionError) as error:
        lower_opset(onnx_ir.from_proto(proto), opset)
    assert error.value.exit_code == ExitCode.EXECUTION
    assert f"can't be expressed in opset {opset}" in str(error.value)
    return str(error.value)


def check_equal(proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    result = lowered(proto, opset)
    np.testing.assert_array_equal(run(result), run(proto))
    return result


# --- Axes ---


@pytest.mark.parametrize(
    "operator", ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd", "ReduceSumSquare"]
)
@pytest.mark.parametrize(("axes", "keep"), [([2, 3], 1), ([1], 0), ([-1, 0], 1)])
def test_axes_become_an_attribute(operator: str, axes: list[int], keep: int) -> None:
    proto = model(
        NODE(operator, ["x", "axes"], ["y"], "reduce", keepdims=keep), opset=18, rank=4 if keep else 3, axes=axes
    )
    (node,) = check_equal(proto, 13).graph.node
    assert list(node.input) == ["x"]
    assert [list(item.ints) for item in node.attribute if item.name == "axes"] == [axes]


def test_axes_of_a_constant_node() -> None:
    constant = NODE("Constant", [], ["axes"], value=numpy_helper.from_array(np.array([1])))
    check_equal(model(constant, NODE("ReduceMean", ["x", "axes"], ["y"]), opset=18), 13)


def test_no_axes() -> None:
    """All are reduced, in both opsets."""
    check_equal(model(NODE("ReduceMean", ["x"], ["y"]), opset=18), 13)
    check_equal(model(NODE("ReduceMean", ["x", ""], ["y"]), opset=18), 13)
    check_equal(model(NODE("ReduceMean", ["x"], ["y"], noop_with_empty_axes=0), opset=18), 13)


def test_an_empty_list_of_axes() -> None:
    check_equal(model(NODE("ReduceMean", ["x", "axes"], ["y"]), opset=18, axes=np.zeros(0, np.int64)), 13)


def test_no_axes_that_mean_nothing_is_reduced() -> None:
    proto = model(NODE("ReduceMean", ["x"], ["y"], "mean", noop_with_empty_axes=1), opset=18)
    assert "ReduceMean 'mean'" in refusal(proto, 13)
    assert "noop_with_empty_axes=1" in refusal(proto, 13)


def test_axes_that_are_computed() -> None:
    nodes = [NODE("Shape", ["x"], ["shape"]), NODE("ReduceMean", ["x", "shape"], ["y"], "mean")]
    assert "ReduceMean 'mean'" in (message := refusal(model(*nodes, opset=18), 13))
    assert "input axes" in message


@pytest.mark.parametrize(
    ("node", "rank", "constants"),
    [
        (NODE("Unsqueeze", ["x", "axes"], ["y"]), 5, {"axes": [1]}),
        (NODE("ReduceSum", ["x", "axes"], ["y"]), 4, {"axes": [1, 2]}),
    ],
)
def test_axes_of_opset_13(node: onnx.NodeProto, rank: int, constants: dict[str, Any]) -> None:
    check_equal(model(node, opset=13, rank=rank, **constants), 11)


# --- Attributes ---


def test_reshape_without_zeros_does_not_need_allowzero() -> None:
    proto = model(NODE("Reshape", ["x", "shape"], ["y"], allowzero=1), opset=14, rank=2, shape=[2, -1])
    (node,) = check_equal(proto, 13).graph.node
    assert not node.attribute


def test_reshape_with_the_default_of_allowzero() -> None:
    proto = model(NODE("Reshape", ["x", "shape"], ["y"], allowzero=0), opset=14, rank=2, shape=[0, -1])
    check_equal(proto, 13)


def test_reshape_whose_zeros_count_is_refused() -> None:
    proto = model(NODE("Reshape", ["x", "shape"], ["y"], "flat", allowzero=1), opset=14, rank=2, shape=[0, 7])
    assert "Reshape 'flat'" in (message := refusal(proto, 13))
    assert "allowzero=1" in message


def test_reshape_to_a_computed_shape_is_refused() -> None:
    nodes = [NODE("Shape", ["x"], ["shape"]), NODE("Reshape", ["x", "shape"], ["y"], allowzero=1)]
    assert "allowzero=1" in refusal(model(*nodes, opset=15), 13)


def test_defaults_are_dropped() -> None:
    norm = {name: np.full(3, value, np.float32) for name, value in zip("abcd", (1.5, 0.2, 0.1, 2.0), strict=True)}
    proto = model(NODE("BatchNormalization", ["x", *norm], ["y"], training_mode=0, epsilon=0.1), opset=15, **norm)
    (node,) = check_equal(proto, 13).graph.node
    assert [item.name for item in node.attribute] == ["epsilon"]


def test_an_attribute_of_another_value_is_refused() -> None:
    proto = model(NODE("Split", ["x"], ["y", "z"], "halves", num_outputs=2), opset=18)
    assert "Split 'halves'" in (message := refusal(proto, 13))
    assert "num_outputs=2" in message


def test_an_operator_that_came_later_is_refused() -> None:
    assert "came with opset 20" in (message := refusal(model(NODE("Gelu", ["x"], ["y"], "gelu"), opset=20), 13))
    assert "Gelu 'gelu'" in message


# --- Operators that meant another thing ---


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("attributes", [{}, {"axis": 1}])
def test_softmax_flattened_before_opset_13(operator: str, attributes: dict[str, int]) -> None:
    proto = model(NODE(operator, ["x"], ["y"], "last", **attributes), opset=13)
    check_equal(proto, 13)
    assert f"{operator} 'last'" in refusal(proto, 12)


def test_a_default_that_changed_is_refused() -> None:
    grid = np.zeros((2, 4, 5, 2), np.float32)
    proto = model(NODE("GridSample", ["x", "grid"], ["y"], "sample"), opset=20, grid=grid)
    assert "attribute mode had another default" in refusal(proto, 17)


@pytest.mark.parametrize(
    ("node", "constants", "opset", "named"),
    [
        (NODE("Clip", ["x", "low"], ["y"]), {"low": np.float32(0.5)}, 10, "input min"),
        (NODE("Dropout", ["x", "ratio"], ["y"]), {"ratio": np.float32(0.5)}, 11, "input ratio"),
    ],
)
def test_constants_that_were_no_lists_are_refused(
    node: onnx.NodeProto, constants: dict[str, Any], opset: int, named: str
) -> None:
    """Their attribute was a real number, which a list of whole numbers must not replace."""
    assert named in refusal(model(node, opset=13, **constants), opset)


# --- Whole graphs ---


@pytest.mark.parametrize("opset", [13, 15, 16])
def test_a_network(tmp_path: Path, opset: int) -> None:
    proto = onnx.load(small.onnx_convnet(tmp_path / "net.onnx", opset=18))
    result = lowered(proto, opset)
    feeds = {"image": small.images(3)}
    one, two = (
        onnxruntime.InferenceSession(item.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
        for item in (proto, result)
    )
    np.testing.assert_array_equal(one[0], two[0])


@pytest.mark.parametrize("opset", [17, 18, 23])
def test_a_low_opset_is_left_alone(tmp_path: Path, opset: int) -> None:
    proto = onnx.load(small.onnx_convnet(tmp_path / "net.onnx", opset=17))
    graph = onnx_ir.from_proto(proto)
    before = onnx_ir.to_proto(graph)
    lower_opset(graph, opset)
    assert onnx_ir.to_proto(graph) == before


def test_operators_of_other_domains_are_left_alone() -> None:
    proto = model(NODE("Identity", ["x"], ["y"]), opset=18)
    proto.graph.node[0].CopyFrom(NODE("NoSuchOperator", ["x"], ["y"], domain="of.mine", depth=3))
    proto.opset_import.append(helper.make_opsetid("of.mine", 7))
    graph = onnx_ir.from_proto(proto)
    lower_opset(graph, 13)
    result = onnx_ir.to_proto(graph)
    assert {item.domain: item.version for item in result.opset_import} == {"": 13, "of.mine": 7}
    assert result.graph.node[0] == proto.graph.node[0]


def test_subgraphs_are_lowered_too() -> None:
    def branch(name: str, axis: int) -> onnx.GraphProto:
        axes = NODE("Constant", [], [f"axes_{name}"], value=numpy_helper.from_array(np.array([axis])))
        reduce = NODE("ReduceMean", ["x", f"axes_{name}"], [f"y_{name}"])
        output = helper.make_tensor_value_info(f"y_{name}", FLOAT, ["a", "b", "c", "d"])
        return helper.make_graph([axes, reduce], name, [], [output])

    node = NODE("If", ["yes"], ["y"], then_branch=branch("one", 1), else_branch=branch("two", 2))
    result = check_equal(model(node, opset=18, yes=np.array(True)), 13)
    inner = [item.g.node[-1] for item in result.graph.node[0].attribute]
    assert [list(node.input) for node in inner] == [["x"], ["x"]]
