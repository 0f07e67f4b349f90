import numpy as np
import pytest
from onnx_cases import check, check_text, imported, layers_of, node_model, random, run_keras, together

from conrepair.ground.runtime.errors import ConversionError

FLOATS = ["float32", "float64", "float16"]
TOLERANCE = {"float16": {"rtol": 5e-3, "atol": 2e-3}, "float64": {"rtol": 1e-10, "atol": 1e-12}}
ABOVE_ONE = {"Acosh"}
POSITIVE = {"Log", "Sqrt", "Reciprocal"}
UNIT = {"Acos", "Asin", "Atanh"}


@together(
    "operator",
    [
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Exp", "Floor", "Log",
        "Neg", "Reciprocal", "Round", "Sign", "Sin", "Sinh", "Sqrt", "Tan",
    ],
)  # fmt: skip
def test_functions(operator):
    low, high = (-0.9, 0.9) if operator in UNIT else (1.1, 4) if operator in ABOVE_ONE else (-3, 3)
    check(operator, {"x": random(3, 7, low=0.2 if operator in POSITIVE else low, high=high)})


@together(
    "operator", ["Abs", "Ceil", "Cos", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Round", "Sign", "Sin", "Sqrt"]
)
def test_functions_of_double(operator):
    check(operator, {"x": random(3, 7, dtype="float64", low=0.2, high=3)}, **TOLERANCE["float64"])


@together("operator", ["Abs", "Neg", "Sqrt", "Round", "Ceil", "Floor", "Sign", "Exp", "Reciprocal"])
def test_functions_of_half(operator):
    check(operator, {"x": random(3, 7, dtype="float16", low=0.2, high=3)}, **TOLERANCE["float16"])


@together("operator", ["Abs", "Neg", "Sign"])
@together("dtype", ["int8", "int32", "int64"])
def test_functions_of_integers(operator, dtype):
    check(operator, {"x": random(3, 7, dtype=dtype, low=-100, high=100)})


@together("operator", ["Abs", "Sign"])
def test_functions_of_unsigned(operator):
    check(operator, {"x": random(3, 7, dtype="uint8", low=0, high=256)})


def test_halves_are_rounded_to_even():
    check("Round", {"x": np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4999998], np.float32)})


def test_special_numbers():
    x = {"x": np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)}
    for operator in ("Abs", "Neg", "Sqrt", "Ceil", "Reciprocal", "Log"):
        check(operator, x)


# --- two inputs ----------------------------------------------------------------------------------------------

SHAPES = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 3, 4), ()), ((3, 1), (2, 1, 4)), ((), (2, 3)), ((1,), ())]


@together("operator", ["Add", "Sub", "Mul", "Div"])
@together("shapes", SHAPES)
def test_broadcasting(operator, shapes):
    one, two = random(*shapes[0]), random(*shapes[1], low=0.5, high=2, seed=1)
    check(operator, {"a": one, "b": two})


@together("operator", ["Sub", "Div"])
@together("place", [0, 1])
@together("shape", [(4,), (3, 1), (1, 2, 3, 4), (2, 1, 1, 1), ()])
def test_constants(operator, place, shape):
    names = ["x", "c"] if place else ["c", "x"]
    check(
        operator,
        {"x": random(2, 3, 4, low=0.5, high=2)},
        {"c": random(*shape, low=0.5, high=2, seed=1)},
        inputs=names,
    )


@together("operator", ["Add", "Sub", "Mul"])
@together("dtype", ["float16", "float64", "int8", "uint8", "int32", "int64", "uint32"])
def test_element_types(operator, dtype):
    one, two = random(3, 4, dtype=dtype, low=3, high=9), random(4, dtype=dtype, low=0, high=3, seed=1)
    check(operator, {"a": one, "b": two}, **TOLERANCE.get(dtype, {}))
    check(operator, {"a": one}, {"b": two}, **TOLERANCE.get(dtype, {}))


@together(
    "operator", ["Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Equal", "Less", "GreaterOrEqual", "Where"]
)
@together("dtype", ["float64", "int32", "int64"])
def test_a_single_number_does_not_change_the_type(operator, dtype):
    """Keras's files keep no type for an array without axes."""
    attributes = {"fmod": 1} if operator == "Mod" and dtype == "float64" else {}
    feeds, number = {"x": random(3, 4, dtype=dtype, low=1, high=9)}, {"number": np.array(3, dtype)}
    if operator == "Where":
        feeds = {"c": random(3, 4, dtype="bool")} | feeds
    check(operator, feeds, number, **attributes)
    if operator != "Where":
        check(operator, feeds, number, inputs=["number", "x"], **attributes)


@together("dtype", ["int8", "uint8", "int32", "int64", "float64", "float16"])
def test_division(dtype):
    one = np.array([7, 8, 9, 7, 100, 0], dtype)
    two = np.array([2, 4, 5, 7, 3, 5], dtype)
    if not dtype.startswith("u"):
        one = np.concatenate([one, -one, one, -one])
        two = np.concatenate([two, two, -two, -two])
    check("Div", {"a": one, "b": two}, **TOLERANCE.get(dtype, {}))


def test_division_by_zero():
    check("Div", {"a": np.array([1, -1, 0], np.float32)}, {"b": np.zeros(3, np.float32)})


@together("dtype", ["int8", "uint8", "int32", "int64"])
@together("fmod", [0, 1])
def test_remainders_of_integers(dtype, fmod):
    one, two = np.array([7, 8, 9, 5, 100, 0], dtype), np.array([2, 4, 5, 7, 3, 5], dtype)
    if not dtype.startswith("u"):
        one, two = np.concatenate([one, -one, one, -one]), np.concatenate([two, two, -two, -two])
    check("Mod", {"a": one, "b": two}, fmod=fmod)


@together("dtype", FLOATS)
def test_remainders(dtype):
    one, two = random(4, 6, dtype=dtype, low=-9, high=9), random(4, 6, dtype=dtype, low=0.5, high=3, seed=1)
    check("Mod", {"a": one, "b": two * np.array([1, -1, 1, -1, 1, -1], dtype)}, fmod=1, rtol=2e-3, atol=2e-3)


@together(
    ("base", "exponent"),
    [
        ("float32", "float32"), ("float64", "float64"), ("float32", "int32"), ("float32", "int64"),
        ("float32", "float64"), ("int32", "int32"), ("int64", "int64"), ("int32", "float32"), ("int64", "float32"),
        ("float64", "float32"), ("float64", "int64"),
    ],
)  # fmt: skip
@together("constant", [False, True])
def test_powers(base, exponent, constant):
    a, b = {"a": random(3, 4, dtype=base, low=1, high=5)}, {"b": random(4, dtype=exponent, low=1, high=4, seed=1)}
    check("Pow", a, b) if constant else check("Pow", a | b)


@together("exponent", [2.0, 0.5, 3.0, -1.0, 1.0, 0.0])
@together("shape", [(), (1,)])
def test_powers_of_constant_exponents(exponent, shape):
    check("Pow", {"a": random(3, 4, low=0.1, high=3)}, {"b": np.full(shape, exponent, np.float32)})


def test_even_powers_of_negative_numbers():
    check("Pow", {"a": random(3, 4)}, {"b": np.float32(2)})
    check("Pow", {"a": random(3, 4)}, {"b": np.int64(3)})


# --- any number of inputs ------------------------------------------------------------------------------------


@together("operator", ["Max", "Min", "Sum", "Mean"])
@together("count", [1, 2, 3])
def test_many(operator, count):
    arrays = [random(2, 3, 4), random(3, 1, seed=1), random(4, seed=2)][:count]
    check(operator, {f"x{index}": array for index, array in enumerate(arrays)})


@together("operator", ["Max", "Min"])
@together("dtype", ["int32", "int64", "uint8", "float64", "float16", "int8"])
def test_extremes(operator, dtype):
    check(operator, {"a": random(3, 4, dtype=dtype, low=-9, high=9)}, {"b": random(4, dtype=dtype, low=-9, high=9)})


@together("operator", ["Max", "Min"])
def test_extremes_keep_what_is_not_a_number(operator):
    check(operator, {"a": np.array([np.nan, 1], np.float32), "b": np.array([0, np.nan], np.float32)})


# --- Identity, Dropout, CumSum -------------------------------------------------------------------------------


@together("dtype", ["float32", "int64", "bool"])
def test_identity(dtype):
    check("Identity", {"x": random(2, 3, dtype=dtype)})


def test_dropout_of_opset_7():
    check("Dropout", {"x": random(2, 3)}, opset=7, ratio=0.3)


@together("opset", [10, 12, 13])
def test_dropout_with_its_mask(opset):
    check("Dropout", {"x": random(2, 3)}, opset=opset, outputs=2)


def test_dropout_in_training_is_refused():
    constants = {"ratio": np.float32(0.5), "training": np.array(True)}
    with pytest.raises(ConversionError, match=r"Dropout\(\) of node 'the_Dropout'.*training_mode"):
        imported(node_model("Dropout", {"x": random(2, 3)}, constants))
    check("Dropout", {"x": random(2, 3)}, constants | {"training": np.array(False)})
    check("Dropout", {"x": random(2, 3)}, constants | {"ratio": np.float32(0)}, outputs=2)


@together("axis", [0, 1, -1])
@together("attributes", [{}, {"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}])
def test_cumulative_sum(axis, attributes):
    check("CumSum", {"x": random(2, 3, 4)}, {"axis": np.int64(axis)}, opset=14, **attributes)


@together("dtype", ["int32", "int64", "float64"])
def test_cumulative_sum_of_other_types(dtype):
    check("CumSum", {"x": random(2, 5, dtype=dtype)}, {"axis": np.int32(1)})


def test_cumulative_sum_behind_a_convolution():
    check_text(
        "a = Conv (x, w) y = CumSum (a, axis)",
        {"x": random(1, 2, 4, 5)},
        {"w": random(3, 2, 2, 2), "axis": np.int64(1)},
    )


def test_broadcasting_of_older_opsets_is_refused():
    feeds = {"a": random(2, 3, 3), "b": random(3)}
    with pytest.raises(ConversionError, match="of opset 6"):
        imported(node_model("Add", feeds, opset=6, broadcast=1, axis=1))


# --- layouts -------------------------------------------------------------------------------------------------

CONV = {"w": random(3, 2, 2, 2, seed=5)}
IMAGE = {"x": random(2, 2, 5, 6)}


@together(
    "shape", [(3, 1, 1), (1, 3, 1, 1), (), (1,), (5,), (4, 1), (4, 5), (2, 1, 1, 1), (1, 1, 1, 1, 1), (2, 3, 4, 5)]
)
@together("given", ["constant", "tensor"])
@together("text", ["y = Sub (a, b)", "y = Sub (b, a)"])
def test_convolution_and_what_broadcasts(shape, given, text):
    other = {"b": random(*shape, seed=1)}
    feeds, constants = (IMAGE, CONV | other) if given == "constant" else (IMAGE | other, CONV)
    check_text(f"a = Conv (x, w) {text}", feeds, constants)


def test_two_convolutions_stay_channels_last():
    text = "a = Conv (x, w) b = Conv (x, v) c = Add (a, b) d = Mul (c, s) y = Relu (d)"
    network = check_text(text, IMAGE, CONV | {"v": random(3, 2, 2, 2), "s": random(3, 1, 1)})
    assert layers_of(network).count("Transpose") == 2


@together("perm", [[0, 2, 3, 1], [0, 3, 2, 1], [3, 2, 1, 0], [1, 0, 2, 3]])
@together("other", [(4,), (1, 1), (2, 1, 1, 1)])
def test_convolution_transpose_and_what_broadcasts(perm, other):
    shape = [(2, 3, 4, 5)[axis] for axis in perm]
    full = random(*(min(size, 1 if one == 1 else size) for size, one in zip(shape[-1:], other[-1:], strict=True)))
    check_text(f"a = Conv (x, w) t = Transpose <perm = {perm}> (a) y = Add (t, b)", IMAGE, CONV | {"b": full})


def test_a_convolution_and_its_own_transpose():
    check_text(
        "a = Conv (x, w) t = Transpose <perm = [0, 1, 3, 2]> (a) y = Sub (a, t)", {"x": random(2, 2, 5, 5)}, CONV
    )


def test_open_sizes_broadcast_as_ranks_say():
    check_text(
        "a = Conv (x, w) y = Add (a, b)",
        IMAGE | {"b": random(4, 1)},
        CONV,
        symbolic={"x": ["n", 2, "h", "w"], "b": ["p", "q"]},
    )


@together("dtype", ["int8", "int32", "int64"])
def test_the_lowest_integer_has_no_absolute_value(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    dividends = np.array([low, low, low, low + 1, 7, -7, high, 0], dtype)
    feeds = {"x": dividends, "y": np.array([2, 3, -3, 7, low, 2, -2, low], dtype)}
    check("Div", feeds)
    check("Mod", feeds)
    if dtype != "int64":  # ONNX Runtime computes that remainder in float64
        check("Mod", feeds, fmod=1)


def test_remainders_of_large_integers():
    pairs = [(-(2**63) + 1, 7), (2**63 - 1, -2), (2**53 + 1, 2), (-7, 3)]
    feeds = {name: np.array(items) for name, items in zip("xy", zip(*pairs, strict=True), strict=True)}
    (found,) = run_keras(imported(node_model("Mod", feeds, fmod=1)), feeds)
    assert found.tolist() == [abs(one) % abs(two) * (-1 if one < 0 else 1) for one, two in pairs]


def test_negative_powers_of_integers():
    x = np.repeat(np.int64([1, -1, 2, -3]), 5)
    check("Pow", {"x": x, "y": np.tile(np.int64([-2, -1, 0, 1, 3]), 4)})
    check("Pow", {"x": x}, {"y": np.int64([-3])})


@together("dtype", ["uint8", "uint32", "uint64"])
def test_signs_of_what_has_none(dtype):
    check("Sign", {"x": np.array([0, 1, np.iinfo(dtype).max, np.iinfo(dtype).max // 2 + 1], dtype)})
