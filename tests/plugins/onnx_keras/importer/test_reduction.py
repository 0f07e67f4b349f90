import numpy as np
import pytest
from onnx_cases import check, check_text, imported, layers_of, node_model, random, together

from conrepair.ground.runtime.errors import ConversionError

REDUCTIONS = [
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare",
]  # fmt: skip
X = {"x": random(2, 3, 4, low=0.2, high=2)}


@together("operator", REDUCTIONS)
@together("axes", [None, [0], [-1], [0, 2], [2, 0], [-2, 0], [0, 1, 2]])
@together("keepdims", [0, 1])
def test_axes_as_input(operator, axes, keepdims):
    check(operator, X, None if axes is None else {"axes": np.array(axes)}, opset=18, keepdims=keepdims)


@together("operator", REDUCTIONS)
@together("opset", [10, 11, 13])
def test_axes_as_attribute(operator, opset):
    if operator == "ReduceSum" and opset == 13:
        check(operator, X, {"axes": np.array([1])}, opset=13)
        return
    check(operator, X, opset=opset, axes=[1, 2])
    check(operator, X, opset=opset, keepdims=0)


@together("operator", REDUCTIONS)
@together("constants", [None, {"axes": np.zeros(0, np.int64)}])
def test_nothing_to_reduce(operator, constants):
    check(operator, X, constants, noop_with_empty_axes=1)


@together("operator", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd"])
@together("dtype", ["int32", "int64", "float64"])
def test_element_types(operator, dtype):
    check(operator, {"x": random(2, 3, 4, dtype=dtype, low=-9, high=9)}, {"axes": np.array([1])})


@together("operator", ["ReduceMax", "ReduceMin"])
@together("dtype", ["int8", "uint8", "bool", "float16"])
def test_extremes_of_small_types(operator, dtype):
    check(operator, {"x": random(2, 3, 4, dtype=dtype, low=-99, high=99)}, {"axes": np.array([1])}, opset=20)


@together("operator", ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"])
def test_negative_numbers(operator):
    check(operator, {"x": random(2, 3, 4)}, {"axes": np.array([1])})


@together("operator", ["ReduceLogSumExp"])
def test_large_numbers(operator):
    check(operator, {"x": np.array([[1000, 999, 998], [-1000, -1001, 0]], np.float32)}, {"axes": np.array([1])})


@together("axes", [[0], [1], [2], [3], [2, 3], [1, 2], [0, 3], [1, 2, 3]])
@together("keepdims", [0, 1])
def test_behind_a_convolution(axes, keepdims):
    text = f"a = Conv (x, w) y = ReduceSum <keepdims = {keepdims}> (a, axes)"
    feeds, constants = {"x": random(2, 2, 5, 6)}, {"w": random(3, 2, 2, 2), "axes": np.array(axes)}
    check_text(text, feeds, constants, symbolic={"x": ["n", 2, "h", "w"]})


def test_mean_over_space_transposes_nothing_but_the_input():
    text = "a = Conv (x, w) m = ReduceMean <keepdims = 1> (a, axes) y = Mul (a, m)"
    feeds, constants = {"x": random(2, 2, 5, 6)}, {"w": random(3, 2, 2, 2), "axes": np.array([2, 3])}
    assert layers_of(check_text(text, feeds, constants)).count("Transpose") == 2


def test_axes_must_be_known():
    with pytest.raises(ConversionError, match=r"ReduceSum\(\) of node 'the_ReduceSum'.*axes must be constant"):
        imported(node_model("ReduceSum", X | {"axes": np.array([1])}))


# --- ArgMax, ArgMin ------------------------------------------------------------------------------------------


@together("operator", ["ArgMax", "ArgMin"])
@together("attributes", [{}, {"axis": 1}, {"axis": -1, "keepdims": 0}, {"axis": 1, "keepdims": 0}])
@together("last", [0, 1])
def test_arguments(operator, attributes, last):
    x = {"x": np.round(random(2, 6, 7))}
    check(operator, x, opset=13, select_last_index=last, **attributes)


@together("dtype", ["int8", "uint8", "int32", "float64"])
@together("operator", ["ArgMax", "ArgMin"])
def test_arguments_of_other_types(operator, dtype):
    check(operator, {"x": random(3, 9, dtype=dtype, low=-9, high=9)}, axis=1)


@together("axis", [0, 1, 2, 3])
def test_arguments_behind_a_convolution(axis):
    check_text(
        f"a = Conv (x, w) y = ArgMax <axis = {axis}> (a)", {"x": random(2, 2, 5, 6)}, {"w": random(3, 2, 2, 2)}
    )


def test_last_argument_of_an_open_axis_is_refused():
    model = node_model("ArgMax", {"x": random(2, 3)}, select_last_index=1, axis=0, symbolic={"x": ["n", 3]})
    with pytest.raises(ConversionError, match="select_last_index"):
        imported(model)
    check("ArgMax", {"x": random(2, 3)}, axis=0, keepdims=0, symbolic={"x": ["n", 3]})


# --- TopK ----------------------------------------------------------------------------------------------------


@together("axis", [-1, 0, 1])
@together("largest", [0, 1])
def test_top(axis, largest):
    check("TopK", {"x": random(3, 4, 5)}, {"k": np.array([2])}, outputs=2, axis=axis, largest=largest)


def test_top_of_older_opsets():
    check("TopK", {"x": random(3, 5)}, opset=9, outputs=2, k=3, axis=0)
    check("TopK", {"x": random(3, 5)}, {"k": np.array([3])}, opset=10, outputs=2)


@together("dtype", ["int32", "int64", "float64"])
@together("largest", [0, 1])
def test_top_of_other_types(dtype, largest):
    x = np.random.default_rng(3).permutation(12).reshape(2, 6).astype(dtype) - 5
    check("TopK", {"x": x.astype(dtype)}, {"k": np.array([3])}, outputs=2, largest=largest)


@together("largest", [0, 1])
def test_top_of_equals_takes_the_first(largest):
    check("TopK", {"x": np.array([[1, 2, 2, 1, 2, 1]], np.float32)}, {"k": np.array([4])}, outputs=2, largest=largest)


@together("largest", [0, 1])
def test_top_of_extreme_integers(largest):
    x = np.array([[-(2**31), 2**31 - 1, 0, 5]], np.int32)
    check("TopK", {"x": x}, {"k": np.array([3])}, outputs=2, largest=largest)


def test_top_in_any_order():
    check("TopK", {"x": random(3, 5)}, {"k": np.array([5])}, outputs=2, sorted=1)
    network = imported(node_model("TopK", {"x": random(3, 5)}, {"k": np.array([2])}, outputs=2, sorted=0))
    assert network.outputs[0].shape == (3, 2)


@together("axis", [1, 2, 3])
def test_top_behind_a_convolution(axis):
    text = f"a = Conv (x, w) y, i = TopK <axis = {axis}> (a, k)"
    check_text(text, {"x": random(2, 2, 5, 6)}, {"w": random(3, 2, 2, 2), "k": np.array([2])}, outputs=["y", "i"])


@together("dtype", ["int32", "int64"])
def test_the_mean_of_integers_is_exact(dtype):
    large = 2**24 + 1 if dtype == "int32" else 2**40 + 1
    x = np.array([[large, large + 2, large], [-3, -4, -4], [5, 5, 6]], dtype)
    check("ReduceMean", {"x": x}, {"axes": np.array([1])})
    check("ReduceMean", {"x": x}, {"axes": np.array([0])}, keepdims=0)


def test_the_norm_of_integers_does_not_overflow():
    check("ReduceL2", {"x": np.array([[30000, 40000]], np.int32)}, {"axes": np.array([1])})


def test_noop_says_nothing_where_there_are_axes():
    """As tf2onnx writes it at opset 18."""
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    check("ReduceMean", {"x": x}, {"axes": np.array([1])}, keepdims=0, noop_with_empty_axes=1)


@together("operator", ["ReduceMax", "ReduceMean", "ReduceLogSum", "ReduceSumSquare", "ReduceL1"])
def test_without_axes_nothing_is_reduced_whatever_keepdims_says(operator):
    check(operator, {"x": random(2, 3, low=0.5)}, opset=18, noop_with_empty_axes=1, keepdims=0)
