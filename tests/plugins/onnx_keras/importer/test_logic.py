import numpy as np
import onnx
import pytest
from onnx_cases import check, check_text, imported, node_model, random, together

from conrepair.ground.runtime.errors import ConversionError

TYPES = {name: onnx.helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"
)}  # fmt: skip


@together("operator", ["And", "Or", "Xor"])
@together("shape", [(3, 4), (4,), (2, 1, 1), ()])
def test_logic(operator, shape):
    check(operator, {"a": random(3, 4, dtype="bool"), "b": random(*shape, dtype="bool", seed=1)})
    check(operator, {"a": random(3, 4, dtype="bool")}, {"b": random(*shape, dtype="bool", seed=1)})


def test_not():
    check("Not", {"x": random(3, 4, dtype="bool")})


@together("operator", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
@together("dtype", ["float32", "float64", "int32", "int64"])
def test_comparisons(operator, dtype):
    one, two = np.round(random(3, 4, dtype=dtype)), np.round(random(3, 4, dtype=dtype, seed=1))
    check(operator, {"a": one, "b": two})
    check(operator, {"a": one}, {"b": two[0]})


def test_equality_of_truths():
    check("Equal", {"a": random(3, 4, dtype="bool"), "b": random(3, 4, dtype="bool", seed=1)})


@together("operator", ["Equal", "Less", "Greater"])
def test_nothing_compares_with_what_is_not_a_number(operator):
    check(operator, {"a": np.array([np.nan, np.nan, 1], np.float32), "b": np.array([np.nan, 1, np.inf], np.float32)})


@together("operator", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@together("dtype", ["int8", "uint8", "int32", "int64", "uint32"])
def test_bits(operator, dtype):
    check(operator, {"a": random(3, 4, dtype=dtype, low=-99, high=99)}, {"b": random(4, dtype=dtype, low=0, high=99)})


@together("dtype", ["int8", "uint8", "int32", "uint64"])
def test_bitwise_not(dtype):
    check("BitwiseNot", {"x": random(3, 4, dtype=dtype, low=-99, high=99)})


@together("direction", ["LEFT", "RIGHT"])
@together("dtype", ["uint8", "uint32"])
def test_shifts(direction, dtype):
    shifts = random(3, 4, dtype=dtype, low=0, high=8, seed=1)
    check("BitShift", {"a": random(3, 4, dtype=dtype, low=0, high=200), "b": shifts}, direction=direction)


def test_types_that_keras_narrows_are_refused():
    feeds = {"a": random(3, dtype="uint64"), "b": random(3, dtype="uint64")}
    with pytest.raises(ConversionError, match=r"Div\(.*uint32 instead of uint64"):
        imported(node_model("Div", feeds))


@together("dtype", ["float32", "float64", "float16"])
def test_not_a_number(dtype):
    check("IsNaN", {"x": np.array([np.nan, 1, np.inf, -np.inf], dtype)})


@together("dtype", ["float32", "float64"])
@together("positive", [0, 1])
@together("negative", [0, 1])
def test_infinite(dtype, positive, negative):
    x = {"x": np.array([np.nan, 1, np.inf, -np.inf], dtype)}
    check("IsInf", x, detect_positive=positive, detect_negative=negative)


@together("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8"])
def test_where(dtype):
    feeds = {"c": random(3, 1, dtype="bool"), "a": random(2, 3, 4, dtype=dtype), "b": random(4, dtype=dtype, seed=1)}
    check("Where", feeds)


@together("constant", ["c", "a", "b"])
def test_where_with_constants(constant):
    arrays = {"c": random(3, 4, dtype="bool"), "a": random(2, 3, 4), "b": random(1, seed=1)}
    feeds = {name: array for name, array in arrays.items() if name != constant}
    check("Where", feeds, {constant: arrays[constant]}, inputs=["c", "a", "b"])


@together("dtype", ["float32", "float64", "int32", "int64", "uint8"])
@together("shape", [(3, 4), (2,), ()])
def test_where_between_two_numbers(dtype, shape):
    constants = {"a": np.array(3, dtype), "b": np.array(200, dtype)}
    check("Where", {"c": random(*shape, dtype="bool")}, constants, inputs=["c", "a", "b"])


def test_where_keeps_infinity_apart():
    feeds = {"c": np.array([True, False]), "a": np.array([1, np.nan], np.float32)}
    check("Where", feeds, {"b": np.array(-np.inf, np.float32)})


@together("other", [(3, 1, 1), (1, 1), (2, 3, 4, 5)])
def test_where_behind_a_convolution(other):
    check_text(
        "a = Conv (x, w) y = Where (c, a, b)",
        {"x": random(2, 2, 5, 6), "c": random(*other, dtype="bool")},
        {"w": random(3, 2, 2, 2), "b": random(4, 5, seed=1)},
    )


@together("source", TYPES)
@together("target", ["float32", "int32", "bool", "uint8"])
def test_cast(source, target):
    check("Cast", {"x": random(3, 5, dtype=source, low=0, high=9)}, to=TYPES[target])


@together("target", TYPES)
def test_cast_to(target):
    check("Cast", {"x": random(3, 5, low=0, high=9)}, to=TYPES[target])


def test_cast_truncates():
    check("Cast", {"x": np.array([-2.7, -0.5, 0.5, 2.7], np.float32)}, to=TYPES["int32"])
    check("Cast", {"x": np.array([-2.7, -0.5, 0.0, 2.7, np.nan], np.float32)}, to=TYPES["bool"])
    check("Cast", {"x": np.array([300, -1, 70000], np.int32)}, to=TYPES["uint8"])


def test_cast_to_types_without_arithmetic_is_refused():
    with pytest.raises(ConversionError, match=r"Cast\(.*'the_Cast'.*float8_e4m3fn"):
        imported(node_model("Cast", {"x": random(3)}, to=onnx.TensorProto.FLOAT8E4M3FN))


def test_cast_like():
    check("CastLike", {"x": random(3, 4, low=0, high=9)}, {"target": np.zeros(1, np.int64)})
    check("CastLike", {"x": random(3, 4, low=0, high=9), "target": np.zeros(3, np.float64)})


def test_cast_behind_a_convolution():
    check_text("a = Conv (x, w) y = Cast <to = 6> (a)", {"x": random(2, 2, 5, 6)}, {"w": random(3, 2, 2, 2)})


LARGE = np.array([0, 3, 2**32, 2**32 + 3, 2**63, 2**64 - 1, 2**40, 7], np.uint64)
OTHER = np.array([0, 2**32 + 3, 2**63 + 1, 3, 7, 2**63, 64, 1], np.uint64)


@together(
    "operator",
    ["Equal", "Less", "GreaterOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Add", "Sub", "Mul", "Max", "Min"],
)
def test_large_numbers_without_a_sign(operator):
    check(operator, {"x": LARGE, "y": OTHER})
    check(operator, {"x": LARGE}, {"y": OTHER[2:3]})


@together("direction", ["LEFT", "RIGHT"])
def test_shifts_of_large_numbers_without_a_sign(direction):
    check("BitShift", {"x": LARGE, "y": np.arange(0, 64, 8, dtype=np.uint64)}, direction=direction)


def test_opposites_and_choices_of_large_numbers_without_a_sign():
    check("BitwiseNot", {"x": LARGE})
    chosen, larger = imported(node_model("Where", {"c": LARGE > 5, "x": LARGE, "y": OTHER})), LARGE > 5
    np.testing.assert_array_equal(np.asarray(chosen([larger, LARGE, OTHER])), np.where(larger, LARGE, OTHER))


@pytest.mark.parametrize("shapes", [((3, 1), (1, 4)), ((4,), (2, 3, 4)), ((2, 3), (1,)), ((1, 3), (2, 3))])
@pytest.mark.parametrize("operator", ["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"])
def test_bits_of_other_shapes(operator, shapes):
    attributes = {"direction": "LEFT"} if operator == "BitShift" else {}
    x, y = (random(*shape, dtype="uint8", low=0, high=6, seed=rank) for rank, shape in enumerate(shapes))
    network = check(operator, {"x": x, "y": y}, **attributes)
    assert network.outputs[0].shape == np.broadcast_shapes(*shapes)


@together("shape", [(), (2, 3)])
@together("number", [5, 2**31, -(2**40)])
def test_single_constants_keep_their_type(shape, number):
    x = np.full(shape, number + 1, np.int64)
    check("BitwiseAnd", {"x": x}, {"y": np.int64(number)})
    check("LessOrEqual", {"x": x}, {"y": np.full([1] * len(shape), number)})
    check("Greater", {"x": np.full(shape, 0.1)}, {"y": np.float64(0.1)})
