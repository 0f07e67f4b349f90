"""Arithmetic with sizes that are known by name."""

import numpy as np
from onnx_cases import check_text, random, together

X = {"x": random(2, 3, 5)}
OPEN = {"x": ["n", 3, "s"]}


def numbers(**values):
    return {name: np.array(value, np.int64) for name, value in values.items()}


@together(
    ("text", "constants"),
    [
        ("y = Add (d, c)", numbers(c=[1, 2, 3])),
        ("y = Sub (d, c)", numbers(c=1)),
        ("y = Sub (c, d)", numbers(c=10)),
        ("y = Mul (d, c)", numbers(c=[2])),
        ("y = Mul (d, d)", {}),
        ("m = Mul (d, c) y = Div (m, c)", numbers(c=2)),
        ("y = Max (d, c)", numbers(c=1)),
        ("y = Gather (d, c)", numbers(c=[2, 0])),
        ("y = Gather (d, c)", numbers(c=-1)),
        ("y = Slice (d, a, b)", numbers(a=[1], b=[2**63 - 1])),
        ("y = Slice (d, a, b, c, e)", numbers(a=[-1], b=[-(2**63)], c=[0], e=[-1])),
        ("y = Slice (d, a, b, c)", numbers(a=[-2], b=[-1], c=[-1])),
        ("a = Unsqueeze (d, c) y = Squeeze (a, c)", numbers(c=[0])),
        ("a = Unsqueeze (d, c) y = Squeeze (a)", numbers(c=[1])),
        ("y = Concat <axis = 0> (c, d, c)", numbers(c=[7])),
        ("y = ReduceProd <keepdims = 0> (d)", {}),
        ("y = ReduceProd <keepdims = 1> (d, c)", numbers(c=[0])),
        ("y = ReduceSum <keepdims = 0> (d, c)", numbers(c=[-1])),
        ("y = Reshape (d, c)", numbers(c=[-1, 1])),
        ("y = Reshape (d, c)", numbers(c=[0, 1])),
        ("y = Cast <to = 6> (d)", {}),
        ("y = Cast <to = 1> (d)", {}),
        ("y = Identity (d)", {}),
        ("e = Equal (d, c) y = Where (e, c, d)", numbers(c=-1)),
        ("e = Greater (d, c) y = Where (e, d, c)", numbers(c=0)),
        ("e = Less (d, c) y = Where (e, c, d)", numbers(c=0)),
    ],
)  # fmt: skip
def test_sizes(text, constants):
    check_text(f"d = Shape (x) {text}", X, constants, symbolic=OPEN)


def test_sizes_are_split():
    check_text("d = Shape (x) a, b, y = Split (d)", X, symbolic=OPEN, opset=13, outputs=["a", "b", "y"])
    check_text("d = Shape (x) a, y = Split (d, c)", X, numbers(c=[1, 2]), symbolic=OPEN, outputs=["a", "y"])
    check_text("d = Shape (x) a, y = Split <num_outputs = 2> (d)", X, symbolic=OPEN, outputs=["a", "y"])


def test_sizes_that_are_split_may_stay_unused():
    check_text("d = Shape (x) y, b, c = Split (d)", X, symbolic=OPEN, opset=13)


def test_sizes_reduced_to_the_largest_of_three():
    constants = numbers(zero=0, two=2, four=4)
    text = "d = Shape (x) a = Gather (d, zero) y = Max (two, a, four)"
    check_text(text, X, constants, symbolic={"x": [2, 3, "s"]})
    check_text(text, X, constants, symbolic=OPEN)
    check_text(text, {"x": random(7, 3, 5)}, constants, symbolic=OPEN)


@together("size", [4, 5])
def test_halved_sizes(size):
    for text in ("y = Div (d, two)", "a = Add (d, two) y = Div (a, two)"):
        check_text(f"d = Shape (x) {text}", {"x": random(2, size)}, numbers(two=2), symbolic={"x": ["n", "s"]})


def test_sizes_divided_towards_zero():
    """What may be negative isn't rounded down."""
    text = "d = Shape (x) a = Sub (d, c) y = Div (a, two)"
    check_text(text, X, numbers(two=2, c=6), symbolic=OPEN)


def test_comparisons_that_depend_on_the_run():
    text = "d = Shape (x) e = Equal (d, c) y = Where (e, seven, d)"
    for batch in (2, 3):
        check_text(text, {"x": random(batch, 3, 5)}, numbers(c=3, seven=7), symbolic=OPEN)


def test_known_sizes_take_part_in_arithmetic_of_floats():
    text = """d = Shape <start = 1> (x) f = Cast <to = 1> (d) g = Mul (f, half) h = Floor (g) i = Cast <to = 7> (h)
        y = Expand (one, i)"""
    check_text(text, X, {"half": np.float32(0.5), "one": np.float32([[2]])})


def test_sizes_computed_from_small_integers():
    text = "d = Shape (x) i = Cast <to = 6> (d) g = Gather (i, zero) m = Mul (g, two) y = Add (z, m)"
    feeds = X | {"z": random(3, dtype="int32")}
    constants = {"zero": np.array(1), "two": np.array(2, np.int32)}
    check_text(text, feeds, constants, symbolic=OPEN | {"z": [3]})
    constants["zero"] = np.array(0)
    check_text(text, feeds, constants, symbolic=OPEN | {"z": [3]})


def test_windows_over_open_images():
    """What exporters write to crop to the size of another tensor."""
    text = """d = Shape <start = 2> (z) e = Shape <start = 0, end = 2> (z) s = Concat <axis = 0> (e, d)
        a = Expand (one, s) y = Add (a, z)"""
    feeds = {"x": random(1, 2, 5, 6), "z": random(1, 3, 4, 5)}
    check_text(text, feeds, {"one": np.ones((1, 1, 1, 1), np.float32)}, symbolic={"z": ["n", 3, "h", "w"]})
