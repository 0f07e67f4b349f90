import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_cases import check, check_text, imported, layers_of, random, text_model, together

from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.operators.shape import regrouped

IMAGE = {"x": random(2, 2, 5, 6)}
CONV = {"w": random(3, 2, 2, 2, seed=5)}
OPEN = {"x": ["n", 2, "h", "w"]}


def numbers(**values):
    return {name: np.array(value, np.int64) for name, value in values.items()}


# --- Shape, Size ---------------------------------------------------------------------------------------------


@together("attributes", [{}, {"start": 1}, {"end": -1}, {"start": -2, "end": 9}, {"start": 2, "end": 1}])
@together("symbolic", [None, {"x": ["n", 3, "m"]}])
def test_shape(attributes, symbolic):
    check("Shape", {"x": random(2, 3, 4)}, symbolic=symbolic, **attributes)


@together("symbolic", [None, {"x": ["n", 3, "m"]}])
def test_size(symbolic):
    check("Size", {"x": random(2, 3, 4)}, symbolic=symbolic)


def test_shape_behind_a_convolution():
    check_text("a = Conv (x, w) y = Shape (a)", IMAGE, CONV)


# --- Transpose -----------------------------------------------------------------------------------------------


@together("perm", [None, [0, 1, 2], [2, 0, 1], [1, 0, 2]])
@together("dtype", ["float32", "int64", "bool"])
def test_transpose(perm, dtype):
    check("Transpose", {"x": random(2, 3, 4, dtype=dtype)}, **({} if perm is None else {"perm": perm}))


def test_transposes_cancel():
    text = "a = Transpose <perm = [0, 2, 3, 1]> (x) b = Relu (a) y = Transpose <perm = [0, 3, 1, 2]> (b)"
    assert layers_of(check_text(text, {"x": random(2, 3, 4, 5)})) == ["Relu"]


# --- Reshape -------------------------------------------------------------------------------------------------


@together("target", [[2, 12], [24], [4, 6], [-1, 4], [0, -1], [0, 0, 2, 2], [1, 2, 1, 3, 4, 1], [3, 2, 4], [2, 3, 4]])
def test_reshape(target):
    check("Reshape", {"x": random(2, 3, 4)}, numbers(shape=target))


def test_zero_may_mean_zero():
    check("Reshape", {"x": random(0, 3, 4)}, numbers(shape=[3, 0]), allowzero=1)
    check("Reshape", {"x": random(2, 3, 4)}, numbers(shape=[4, 6]), allowzero=1)


@pytest.mark.parametrize("target", [[-1, 12], [0, -1], [0, 4, 3], [0, 2, -1], [0, 3, 2, 2]], ids=str)
def test_reshape_with_open_batch(target):
    network = check("Reshape", {"x": random(2, 3, 4)}, numbers(shape=target), symbolic={"x": ["n", 3, 4]})
    assert network.inputs[0].shape == (None, 3, 4)


@together("target", [[-1, 4], [0, 0, 2, 2], [0, -1], [0, -1, 2], [-1]])
def test_reshape_with_open_batch_and_sequence(target):
    check("Reshape", {"x": random(2, 3, 4)}, numbers(shape=target), symbolic={"x": ["n", "s", 4]})


def test_reshape_to_two_unknown_sizes_is_refused():
    text = "d = Shape (x) s = Gather (d, i) t = Concat <axis = 0> (s, r) y = Reshape (x, t)"
    model = text_model(text, {"x": random(4, 3, 4)}, numbers(i=[1], r=[-1, 4]), symbolic={"x": ["n", "s", 4]})
    with pytest.raises(ConversionError, match=r"Reshape\(\) of node 'y'.*\['s', 'n', '4'\].*--input"):
        imported(model)


@together("target", [[2, -1], [0, 3, -1], [6, 4, 5], [2, 3, 2, 2, 5], [120], [0, 0, 0, 5, 1], [2, 12, 5]])
def test_reshape_behind_a_convolution(target):
    check_text("a = Conv (x, w) y = Reshape (a, t)", IMAGE, CONV | numbers(t=target))


@together("target", [[0, -1], [0, 3, -1], [0, 3, 20], [0, 3, 2, 2, 5], [-1, 60]])
def test_reshape_behind_a_convolution_with_open_batch(target):
    check_text("a = Conv (x, w) y = Reshape (a, t)", IMAGE, CONV | numbers(t=target), symbolic={"x": ["n", 2, 5, 6]})


def test_reshape_behind_a_convolution_of_open_images():
    check_text("a = Conv (x, w) y = Reshape (a, t)", IMAGE, CONV | numbers(t=[0, 3, -1]), symbolic=OPEN)


def test_channel_shuffle():
    text = """a = Reshape (x, s) b = Transpose <perm = [0, 2, 1, 3, 4]> (a) y = Reshape (b, t)"""
    feeds = {"x": random(2, 6, 3, 4)}
    for constants in (numbers(s=[-1, 2, 3, 3, 4], t=[-1, 6, 3, 4]), numbers(s=[0, 2, 3, 3, 4], t=[0, -1, 3, 4])):
        check_text(text, feeds, constants, symbolic={"x": ["n", 6, 3, 4]})


HEADS = """d = Shape (x) b = Gather (d, zero) s = Gather (d, one)
    b1 = Unsqueeze (b, zeros) s1 = Unsqueeze (s, zeros)
    t = Concat <axis = 0> (b1, s1, four, two)
    a = Reshape (x, t) h = Transpose <perm = [0, 2, 1, 3]> (a)
    k = Transpose <perm = [0, 1, 3, 2]> (h) m = MatMul (h, k) p = Softmax <axis = -1> (m) v = MatMul (p, h)
    o = Transpose <perm = [0, 2, 1, 3]> (v) u = Concat <axis = 0> (b1, s1, eight) y = Reshape (o, u)"""


@together("shape", [["n", "s", 8], ["n", 5, 8], [2, "s", 8], [2, 5, 8]])
def test_heads_of_attention(shape):
    constants = numbers(zero=0, one=1, zeros=[0], four=[4], two=[2], eight=[8])
    check_text(HEADS, {"x": random(2, 5, 8)}, constants, symbolic={"x": shape})


def test_class_token():
    text = """d = Shape (x) b = Gather (d, zero) b1 = Unsqueeze (b, zeros) t = Concat <axis = 0> (b1, minus, minus)
        e = Equal (t, minus) c = ConstantOfShape <value = int64[1] {1}> (three) g = Where (e, c, t)
        k = Expand (token, g) y = Concat <axis = 1> (k, x)"""
    constants = numbers(zero=0, zeros=[0], minus=[-1], three=[3]) | {"token": random(1, 1, 4)}
    check_text(text, {"x": random(2, 5, 4)}, constants, symbolic={"x": ["n", 5, 4]})


def test_flatten_by_computed_sizes():
    text = """d = Shape (x) b = Slice (d, zeros, ones) r = Slice (d, ones, four) p = ReduceProd <keepdims = 1> (r)
        t = Concat <axis = 0> (b, p) y = Reshape (x, t)"""
    constants = numbers(zeros=[0], ones=[1], four=[4])
    check_text(text, {"x": random(2, 3, 4, 5)}, constants, symbolic={"x": ["n", 3, 4, 5]})


@together("axis", [0, 1, 2, 3, 4, -1])
def test_flatten(axis):
    check("Flatten", {"x": random(2, 3, 4, 5)}, axis=axis)
    check("Flatten", {"x": random(2, 3, 4, 5)}, axis=axis, symbolic={"x": ["n", 3, 4, 5]})


@together("axis", [1, 2, 3])
def test_flatten_behind_a_convolution(axis):
    check_text(f"a = Conv (x, w) y = Flatten <axis = {axis}> (a)", IMAGE, CONV)


# --- Squeeze, Unsqueeze, Expand ------------------------------------------------------------------------------


@together("axes", [None, [0], [-2], [0, 2]])
def test_squeeze(axes):
    x, attributes = {"x": random(1, 3, 1, 4)}, {} if axes is None else {"axes": axes}
    check("Squeeze", x, opset=11, **attributes)
    check("Squeeze", x, numbers(**attributes), opset=13)


@together("axes", [[0], [-1], [1, 3], [3, 0], [-1, 0], [-4, -1]])
def test_unsqueeze(axes):
    check("Unsqueeze", {"x": random(2, 3)}, opset=11, axes=axes)
    check("Unsqueeze", {"x": random(2, 3)}, numbers(axes=axes), opset=13, symbolic={"x": ["n", 3]})


@together("text", ["y = Squeeze (p, axes)", "q = Squeeze (p, axes) y = Unsqueeze (q, back)"])
def test_pooled_images_are_squeezed(text):
    text = f"a = Conv (x, w) p = GlobalAveragePool (a) {text}"
    check_text(text, IMAGE, CONV | numbers(axes=[2, 3], back=[0, 3]), symbolic=OPEN)


@together("target", [[2, 3, 4], [3, 4], [1, 1, 1], [5, 2, 3, 4], [2, 3, 1]])
def test_expand(target):
    check("Expand", {"x": random(3, 1)}, numbers(shape=target))
    check("Expand", {"x": random(2, 1, 4)}, numbers(shape=[2, 3, 1]))


@together("dtype", ["float32", "int64", "bool", "float16"])
def test_expand_to_an_open_batch(dtype):
    text = "d = Shape (x) t = Concat <axis = 0> (d, two) y = Expand (c, t)"
    feeds, constants = {"x": random(3, 4)}, numbers(two=[2]) | {"c": random(4, 1, dtype=dtype)}
    check_text(text, feeds, constants, symbolic={"x": ["n", "m"]} if dtype == "int64" else {"x": ["n", 4]})


@together("batch", [1, 5])
def test_expand_of_an_open_size_that_may_be_one(batch):
    feeds = {"x": random(batch, 3)}
    check("Expand", feeds, numbers(shape=[5, 3]), symbolic={"x": ["n", 3]})
    text = "d = Shape (z) y = Expand (x, d)"
    check_text(text, feeds | {"z": random(5, 3)}, symbolic={"x": ["n", 3], "z": ["m", 3]})


def test_expand_behind_a_convolution():
    text = "a = Conv (x, w) p = GlobalAveragePool (a) d = Shape (a) y = Expand (p, d)"
    check_text(text, IMAGE, CONV, symbolic=OPEN)


# --- Range, ConstantOfShape, EyeLike -------------------------------------------------------------------------


def test_range_of_known_numbers():
    text = "r = Range (start, limit, delta) y = Add (x, r)"
    check_text(text, {"x": random(3, dtype="int64")}, numbers(start=2, limit=8, delta=2))


@together("start", [0, 3, -2])
def test_range_over_an_open_sequence(start):
    text = """d = Shape (x) s = Gather (d, one) l = Add (s, start) r = Range (start, l, one) y = Gather (table, r)"""
    constants = numbers(one=1, start=start) | {"table": random(30, 4)}
    if start >= 0:
        check_text(text, {"x": random(2, 5)}, constants, symbolic={"x": ["n", "s"]})
    text = "d = Shape (x) s = Gather (d, one) l = Add (s, start) y = Range (start, l, one)"
    check_text(text, {"x": random(2, 5)}, constants, symbolic={"x": ["n", "s"]})


def test_range_with_steps_over_an_open_sequence_is_refused():
    text = "d = Shape (x) s = Gather (d, one) y = Range (zero, s, two)"
    with pytest.raises(ConversionError, match=r"Range.*its step isn't 1"):
        imported(text_model(text, {"x": random(2, 5)}, numbers(zero=0, one=1, two=2), symbolic={"x": ["n", "s"]}))


@together("value", ["", "<value = int64[1] {7}>", "<value = bool[1] {1}>", "<value = float[1] {1}>"])
@together("symbolic", [None, {"x": ["n", 4]}, {"x": ["n", "m"]}])
def test_constant_of_shape(value, symbolic):
    check_text(f"d = Shape (x) y = ConstantOfShape {value} (d)", {"x": random(3, 4)}, symbolic=symbolic)


@together("attributes", [{}, {"k": 1}, {"k": -2, "dtype": 7}])
def test_eye_like(attributes):
    check("EyeLike", {"x": random(3, 5)}, **attributes)


# --- properties ----------------------------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.integers(1, 6), max_size=5), st.data())
def test_groups_have_equal_products_and_keep_their_order(source, data):
    target = data.draw(targets(math.prod(source)))
    groups = regrouped(source, target)
    assert [axis for axes, _ in groups for axis in axes] == list(range(len(source)))
    assert [axis for _, axes in groups for axis in axes] == list(range(len(target)))
    for axes, others in groups:
        assert math.prod(source[axis] for axis in axes) == math.prod(target[axis] for axis in others)


@st.composite
def targets(draw, total):
    """Some shape of as many cells."""
    sizes = []
    while total > 1 and len(sizes) < 4:
        size = draw(st.sampled_from([number for number in range(1, total + 1) if total % number == 0]))
        sizes.append(size)
        total //= size
    return [*sizes, total] if total > 1 or draw(st.booleans()) else sizes


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.data())
def test_chains_of_reshapes_and_transposes(data):
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4))
    x = random(*shape)
    expected, lines, constants, last = x, [], {}, "x"
    for number in range(data.draw(st.integers(1, 5))):
        if data.draw(st.booleans()):
            perm = data.draw(st.permutations(range(expected.ndim)))
            lines.append(
                f"v{number} = Transpose <perm = {list(perm)}> ({last})" if perm else f"v{number} = Identity ({last})"
            )
            expected = expected.transpose(perm)
        else:
            target = data.draw(targets(expected.size))
            constants[f"s{number}"] = np.array(target, np.int64)
            lines.append(f"v{number} = Reshape ({last}, s{number})")
            expected = expected.reshape(target)
        last = f"v{number}"
    network = check_text("\n".join(lines) + f" y = Neg ({last})", {"x": x}, constants)
    np.testing.assert_array_equal(np.asarray(network(x)), -expected)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.data())
def test_chains_of_layouts(data):
    """Convolutions, transposes, reductions and joins in any order, with an open batch."""
    shape = [2, 4, 4, 4]
    constants = {"w": random(4, 4, 1, 1, seed=3), "axes": np.array([2]), "row": random(4, seed=4)}
    lines, last = [], "x"
    for number in range(data.draw(st.integers(2, 6))):
        kind = data.draw(
            st.sampled_from(["conv", "transpose", "reshape", "reduce", "concat", "add", "pool", "softmax"])
        )
        new = f"v{number}"
        lines.append(
            {
                "conv": f"{new} = Conv ({last}, w)",
                "transpose": f"{new} = Transpose <perm = {[0, *data.draw(st.permutations([1, 2, 3]))]}> ({last})",
                "reshape": f"{new}s = Reshape ({last}, s{number}) {new} = Reshape ({new}s, back)",
                "reduce": f"{new}r = ReduceMean <keepdims = 1> ({last}, a{number}) {new} = Sub ({last}, {new}r)",
                "concat": f"{new}c = Concat <axis = {data.draw(st.integers(1, 3))}> ({last}, x) "
                f"{new} = Slice ({new}c, two, six, a{number}z)",
                "add": f"{new} = Add ({last}, row)",
                "pool": f"{new} = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> ({last})",
                "softmax": f"{new} = Softmax <axis = {data.draw(st.integers(1, 3))}> ({last})",
            }[kind]
        )
        constants[f"a{number}"] = np.array([data.draw(st.integers(1, 3))])
        constants[f"s{number}"] = np.array(
            data.draw(st.sampled_from([[-1, 16, 4], [-1, 4, 16], [-1, 8, 8], [-1, 64]]))
        )
        last = new
        if kind == "concat":
            axis = int(lines[-1].split("axis = ")[1][0])
            constants[f"a{number}z"] = np.array([axis])
    constants |= {"back": np.array([-1, *shape[1:]]), "two": np.array([2]), "six": np.array([6])}
    check_text(
        "\n".join(lines) + f" y = Relu ({last})", {"x": random(*shape)}, constants, symbolic={"x": ["n", 4, 4, 4]}
    )
