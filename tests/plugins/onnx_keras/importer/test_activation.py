import numpy as np
import pytest
from onnx_cases import check, check_text, layers_of, node_model, random, run_keras, together
from onnx_cases import imported as import_case

from conrepair.ground.runtime.errors import ConversionError

X = {"x": random(2, 3, 5, low=-4, high=4)}


@together(
    ("operator", "attributes"),
    [
        ("Relu", {}),
        ("Sigmoid", {}),
        ("Softsign", {}),
        ("Softplus", {}),
        ("Tanh", {}),
        ("Erf", {}),
        ("Elu", {}),
        ("Elu", {"alpha": 0.3}),
        ("Celu", {}),
        ("Celu", {"alpha": 2.5}),
        ("Selu", {}),
        ("Selu", {"alpha": 1.2, "gamma": 3.0}),
        ("LeakyRelu", {}),
        ("LeakyRelu", {"alpha": 0.3}),
        ("LeakyRelu", {"alpha": -0.5}),
        ("ThresholdedRelu", {}),
        ("ThresholdedRelu", {"alpha": -1.5}),
        ("HardSigmoid", {}),
        ("HardSigmoid", {"alpha": 0.5, "beta": 0.25}),
        ("HardSwish", {}),
        ("Mish", {}),
        ("Gelu", {}),
        ("Gelu", {"approximate": "tanh"}),
        ("Shrink", {}),
        ("Shrink", {"bias": 0.7, "lambd": 1.5}),
    ],
)
def test_plain(operator, attributes):
    check(operator, X, opset=22, **attributes)


@pytest.mark.parametrize("attributes", [{}, {"alpha": 1.702}], ids=str)
def test_swish(attributes):
    network = import_case(node_model("Swish", X, opset=24, **attributes))
    alpha = attributes.get("alpha", 1.0)
    np.testing.assert_allclose(run_keras(network, X)[0], X["x"] / (1 + np.exp(-alpha * X["x"])), rtol=1e-5, atol=1e-6)


@together("operator", ["Relu", "Sigmoid", "Tanh", "Softmax", "LogSoftmax"])
def test_double(operator):
    check(operator, {"x": random(3, 4, dtype="float64")}, rtol=1e-9, atol=1e-12)


@together("operator", ["Relu", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "LeakyRelu"])
def test_half(operator):
    check(operator, {"x": random(3, 4, dtype="float16")}, rtol=5e-3, atol=2e-3)


@together("dtype", ["int8", "int32"])
def test_relu_of_integers(dtype):
    check("Relu", {"x": random(3, 4, dtype=dtype, low=-100, high=100)})


@together("dtype", ["int8", "uint8", "int32", "float64"])
def test_shrink_of_other_types(dtype):
    check("Shrink", {"x": random(3, 4, dtype=dtype, low=-9, high=9)}, lambd=2.0, bias=1.0)


@together("slope", [(3, 1, 1), (1, 3, 1, 1), (1,), (5,), (3, 4, 5), (2, 3, 4, 5), ()])
@together("given", [True, False])
def test_prelu(slope, given):
    x, slopes = {"x": random(2, 3, 4, 5)}, {"slope": random(*slope, seed=1)}
    check("PRelu", x, slopes) if given else check("PRelu", x | slopes)


def test_prelu_behind_a_convolution():
    feeds = {"x": random(2, 2, 5, 6)}
    check_text(
        "a = Conv (x, w) y = PRelu (a, slope)", feeds, {"w": random(3, 2, 2, 2), "slope": random(3, 1, 1, seed=1)}
    )


# --- Clip ----------------------------------------------------------------------------------------------------


@together("attributes", [{}, {"min": -1.0}, {"max": 1.0}, {"min": 0.0, "max": 6.0}])
def test_clip_by_attributes(attributes):
    check("Clip", {"x": random(4, 5, low=-9, high=9)}, opset=7, **attributes)


@together(("low", "high"), [(-1, 1), (0, 6), (None, 1), (-1, None), (None, None), (2, -2), (-np.inf, np.inf)])
@together("opset", [11, 13])
def test_clip_by_inputs(low, high, opset):
    limits = {"low": low, "high": high}
    constants = {name: np.float32(limit) for name, limit in limits.items() if limit is not None}
    names = ["x", *(name if name in constants else "" for name in limits)]
    check("Clip", {"x": random(4, 5, low=-9, high=9)}, constants, inputs=names, opset=opset)


@together("dtype", ["int8", "uint8", "int32", "int64", "float64", "float16"])
def test_clip_of_other_types(dtype):
    limits = {"low": np.array(1, dtype), "high": np.array(3, dtype)}
    check("Clip", {"x": random(4, 5, dtype=dtype, low=-9, high=9)}, limits)


def test_clip_keeps_what_is_not_a_number():
    check("Clip", {"x": np.array([np.nan, 1, -5], np.float32)}, {"low": np.float32(-1), "high": np.float32(0.5)})


def test_clip_at_six_is_relu6():
    constants = {"low": np.float32(0), "high": np.float32(6)}
    assert layers_of(check("Clip", X, constants)) == ["Relu6"]


# --- along an axis -------------------------------------------------------------------------------------------


@together("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@together("axis", [None, 0, 1, -1, -3])
def test_along_an_axis(operator, axis):
    check(operator, {"x": random(2, 3, 4)}, opset=13, **({} if axis is None else {"axis": axis}))


@together("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@together("axis", [None, 0, 1, 2, -1])
@together("opset", [8, 11])
def test_joined_axes(operator, axis, opset):
    if (axis, opset) != (-1, 8):  # opset 8 counts from the front only
        check(operator, {"x": random(2, 3, 4)}, opset=opset, **({} if axis is None else {"axis": axis}))


@together("shape", [(2, 3, 1, 1), (2, 1, 4, 1)])
def test_joined_axes_of_length_one(shape):
    check("Softmax", {"x": random(*shape)}, opset=11, symbolic={"x": ["n", *shape[1:]]})


def test_joined_axes_with_open_sizes_in_front():
    check("Softmax", {"x": random(2, 3, 4)}, opset=11, axis=1, symbolic={"x": ["n", 3, 4]})
    check("Softmax", {"x": random(2, 3, 4)}, opset=11, axis=2, symbolic={"x": ["n", "m", 4]})
    with pytest.raises(ConversionError, match=r"Softmax.*the_Softmax.*--input"):
        import_case(node_model("Softmax", {"x": random(2, 3, 4)}, opset=11, axis=1, symbolic={"x": ["n", 3, "m"]}))
    model = node_model("Softmax", {"x": random(2, 3, 4, 5)}, opset=11, axis=2, symbolic={"x": ["n", "m", 4, 5]})
    with pytest.raises(ConversionError, match="in front of its axis"):
        import_case(model)


@together("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@together("axis", [0, 1, 2, 3])
def test_along_an_axis_behind_a_convolution(operator, axis):
    check_text(
        f"a = Conv (x, w) y = {operator} <axis = {axis}> (a)",
        {"x": random(2, 2, 5, 6)},
        {"w": random(3, 2, 2, 2)},
        opset=13,
    )


@together("operator", ["Softmax", "Hardmax"])
def test_joined_axes_behind_a_convolution(operator):
    check_text(
        f"a = Conv (x, w) y = {operator} <axis = 1> (a)",
        {"x": random(2, 2, 4, 5)},
        {"w": random(3, 2, 2, 2)},
        opset=11,
    )


def test_hardmax_takes_the_first_of_equals():
    check("Hardmax", {"x": np.array([[1, 3, 3], [2, 2, 2]], np.float32)})


def test_softmax_of_large_numbers():
    check("Softmax", {"x": np.array([[1000, 999, -1000], [-3e38, 0, 3e38]], np.float32)})


@together("names", [["x", "low", "high"], ["x", "", "high"], ["x", "low"]])
def test_clip_with_bounds_that_are_computed(names):
    feeds = {"x": random(2, 5), "low": np.float32(-0.5), "high": np.float32(0.5)}
    given = {name: feeds[name] for name in names if name}
    check("Clip", given, inputs=names)
    if "high" in given:
        check("Clip", {"x": feeds["x"], "high": feeds["high"]}, {"low": feeds["low"]}, inputs=names)


@together(("bias", "threshold"), [(2.77, 3.0), (2.77, -3.72), (-1.5, 0.5)])
def test_shrink_of_integers_and_of_negative_thresholds(bias, threshold):
    check("Shrink", {"x": np.arange(4, 9, dtype=np.uint8)}, opset=18, bias=bias, lambd=threshold)
    check("Shrink", {"x": np.arange(-9, 9, dtype=np.int32)}, opset=18, bias=bias, lambd=threshold)
    check("Shrink", {"x": random(3, 4, low=-5, high=5)}, opset=18, bias=bias, lambd=threshold)


def test_hardmax_takes_the_first_zero_of_either_sign():
    check("Hardmax", {"x": np.float32([[-1.0, -0.0, 0.0], [-0.0, -1.0, 0.0]])})


@together("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@together("axis", [2, -1])
def test_along_one_of_many_axes(operator, axis):
    check(operator, {"x": random(2, 1, 3, 2, 1, 3, 2)}, axis=axis)
