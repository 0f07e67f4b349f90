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

from conrepair.formats.onnx.passes.lower_opset import lower_opset
from conrepair.ground.runtime.errors import ConversionError, ExitCode

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


@pytest.mark.parametrize("constants", [{}, {"axes": np.zeros(0, np.int64)}])
def test_no_axes_that_mean_nothing_is_reduced(constants: dict[str, Any]) -> None:
    node = NODE("ReduceMean", ["x", *constants], ["y"], "mean", noop_with_empty_axes=1)
    (node,) = check_equal(model(node, opset=18, **constants), 13).graph.node
    assert node.op_type == "Identity"


def test_no_axes_of_a_reduction_that_changes_single_elements() -> None:
    proto = model(NODE("ReduceL2", ["x"], ["y"], "norm", noop_with_empty_axes=1), opset=18)
    np.testing.assert_allclose(run(lowered(proto, 13)), np.abs(DATA), rtol=1e-5)


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
    proto = model(NODE("AveragePool", ["x"], ["y"], "pool", kernel_shape=[2, 2], dilations=[2, 2]), opset=19)
    assert "AveragePool 'pool'" in (message := refusal(proto, 13))
    assert "dilations=(2, 2)" in message


def test_an_operator_that_came_later_is_refused() -> None:
    assert "came with opset 14" in (message := refusal(model(NODE("Trilu", ["x"], ["y"], "lower"), opset=17), 13))
    assert "Trilu 'lower'" in message


# --- What newer opsets added ---


@pytest.mark.parametrize(("axis", "count"), [(1, 2), (-1, 3), (3, 5)])
def test_split_into_a_number_of_parts(axis: int, count: int) -> None:
    """5 into 3 are 2, 2, 1."""
    outputs = ["y", *(f"part_{index}" for index in range(count - 1))]
    proto = model(NODE("Split", ["x"], outputs, "parts", axis=axis, num_outputs=count), opset=18)
    assert len(check_equal(proto, 13).graph.node[-1].input) == 2


@pytest.mark.parametrize("bounds", [{"start": 1}, {"end": -1}, {"start": -2, "end": 10}, {"start": 3, "end": 1}])
def test_a_part_of_a_shape(bounds: dict[str, int]) -> None:
    nodes = [NODE("Shape", ["x"], ["shape"], **bounds), NODE("Cast", ["shape"], ["y"], to=FLOAT)]
    check_equal(model(*nodes, opset=15, rank=1), 13)


@pytest.mark.parametrize("axes", [[1], [-1, 2]])
def test_pads_of_some_axes(axes: list[int]) -> None:
    pads = np.arange(1, 2 * len(axes) + 1)
    node = NODE("Pad", ["x", "pads", "value", "axes"], ["y"])
    check_equal(model(node, opset=18, pads=pads, value=np.float32(0.5), axes=np.array(axes)), 13)


@pytest.mark.parametrize("operands", [{"scales": np.array([3.0, 2.0], np.float32)}, {"sizes": np.array([9, 7])}])
def test_a_resize_of_some_axes(operands: dict[str, Any]) -> None:
    inputs = ["x", "", "scales"] if "scales" in operands else ["x", "", "", "sizes"]
    check_equal(model(NODE("Resize", inputs, ["y"], axes=[3, 2], mode="linear"), opset=18, **operands), 13)


# --- Operators that came later ---


@pytest.mark.parametrize(
    ("node", "opset"),
    [
        (NODE("HardSwish", ["x"], ["y"]), 14),
        (NODE("Gelu", ["x"], ["y"]), 20),
        (NODE("Gelu", ["x"], ["y"], approximate="tanh"), 20),
        (NODE("Mish", ["x"], ["y"]), 18),
        (NODE("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=-1), 17),
        (NODE("LayerNormalization", ["x", "scale"], ["y"], epsilon=0.1), 17),
        (NODE("GroupNormalization", ["x", "weight", "shift"], ["y"], num_groups=3), 21),
        (NODE("RMSNormalization", ["x", "scale"], ["y"]), 23),
        (NODE("CastLike", ["x", "scale"], ["y"]), 19),
        (NODE("Swish", ["x"], ["y"]), 24),
    ],
    ids=lambda item: item.op_type if isinstance(item, onnx.NodeProto) else "",
)
def test_operators_are_replaced_by_their_definition(node: onnx.NodeProto, opset: int) -> None:
    shapes = {"scale": 5, "bias": 5, "weight": 3, "shift": 3}
    constants = {name: np.linspace(0.5, 2, shapes[name], dtype=np.float32) for name in node.input[1:]}
    proto = model(node, opset=opset, **constants)
    result = lowered(proto, 13)
    np.testing.assert_allclose(run(result), run(proto), rtol=1e-5, atol=1e-6)
    assert node.op_type not in {item.op_type for item in result.graph.node}


def test_operators_that_the_consumer_lacks_are_replaced_in_any_opset() -> None:
    graph = onnx_ir.from_proto(proto := model(NODE("Softmax", ["x"], ["y"]), opset=13))
    lower_opset(graph, 17, {"Softmax", "Relu"})
    result = onnx_ir.to_proto(graph)
    assert "Softmax" not in {item.op_type for item in result.graph.node}
    assert [item.version for item in result.opset_import] == [13]
    np.testing.assert_allclose(run(result), run(proto), rtol=1e-6)


def test_types_that_the_older_operator_lacks_are_refused() -> None:
    nodes = [
        NODE("Cast", ["x"], ["whole"], to=onnx.TensorProto.INT32),
        NODE("Relu", ["whole"], ["positive"], "relu"),
        NODE("Cast", ["positive"], ["y"], to=FLOAT),
    ]
    assert "X of type tensor(int32)" in (message := refusal(model(*nodes, opset=14), 13))
    assert "Relu 'relu'" in message


# --- Operators that meant another thing ---


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("attributes", [{}, {"axis": 1}])
def test_softmax_flattened_before_opset_13(operator: str, attributes: dict[str, int]) -> None:
    proto = model(NODE(operator, ["x"], ["y"], "last", **attributes), opset=13)
    check_equal(proto, 13)
    np.testing.assert_allclose(run(lowered(proto, 12)), run(proto), rtol=1e-5, atol=1e-6)


def test_hardmax_has_no_definition_to_replace_it_by() -> None:
    assert "Hardmax 'last'" in refusal(model(NODE("Hardmax", ["x"], ["y"], "last"), opset=13), 12)


def test_a_default_that_changed_is_refused() -> None:
    grid = np.zeros((2, 4, 5, 2), np.float32)
    proto = model(NODE("GridSample", ["x", "grid"], ["y"], "sample"), opset=20, grid=grid)
    assert "attribute mode had another default" in refusal(proto, 17)


def test_values_of_attributes_that_came_later_are_refused() -> None:
    proto = model(NODE("Pad", ["x", "pads"], ["y"], "wrapped", mode="wrap"), opset=19, pads=np.ones(8, np.int64))
    assert "mode=wrap" in refusal(proto, 18)


def test_constants_that_were_no_lists_are_refused() -> None:
    """Their attribute was a real number, which a list of whole numbers must not replace."""
    proto = model(NODE("Dropout", ["x", "ratio"], ["y"]), opset=13, ratio=np.float32(0.5))
    assert "input ratio" in refusal(proto, 11)
    clip = model(NODE("Clip", ["x", "low"], ["y"]), opset=13, low=np.float32(0.5))
    assert "Clip" not in {node.op_type for node in check_equal(clip, 10).graph.node}, "its definition instead"


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
