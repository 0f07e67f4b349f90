"""Element types beside each other, and values at their limits."""

from __future__ import annotations

from conrepair.generate.forms.form import form
from conrepair.generate.tensors import element_type
from conrepair.generate.weaving import Weaver


@form("float16 beside float32")
def half_beside_single(w: Weaver) -> None:
    x = w.pick_or_new(("float32",))
    half = w.node("Cast", w.node("Tanh", x), to=element_type("float16"))
    scaled = w.node("Mul", half, w.new("float16", w.type_of(x).shape[-1:]))
    w.node("Add", w.node("Cast", scaled, to=element_type("float32")), x)


@form("bfloat16 beside float32")
def brain_beside_single(w: Weaver) -> None:
    x = w.pick_or_new(("float32",))
    narrow = w.node("Cast", w.node("Tanh", x), to=element_type("bfloat16"))
    w.node("Add", w.node("Cast", narrow, to=element_type("float32")), x)


@form("weight in bfloat16")
def brain_weight(w: Weaver) -> None:
    x = w.pick_or_new(("float32",), rank=range(2, 5))
    weight = w.new("bfloat16", w.type_of(x).shape[:-3:-1])
    moved = w.node("Transpose", weight, perm=(1, 0))
    w.node("Mul", x, w.node("Cast", moved, to=element_type("float32")))


@form("limits of int64")
def limits(w: Weaver) -> None:
    x = w.pick_or_new(("int64",), rank=range(1, 5))
    ends = w.constant(w.random.choice([[2**63 - 1], [-(2**63)], [2**31], [-(2**31) - 1]]))
    w.node(w.random.choice(["Max", "Min", "BitwiseAnd", "BitwiseOr"]), x, ends)


@form("negative divisor")
def negative_divisor(w: Weaver) -> None:
    dtype = w.random.choice(["int64", "int32", "float32"])
    x = w.pick_or_new((dtype,), rank=range(1, 5))
    by = w.constant([w.random.choice([-2, -3, -7])], dtype)  # the smallest integer by -1 is a signal
    if dtype == "float32":
        w.node("Div", x, by)
    else:
        w.node(w.random.choice(["Div", "Mod"]), x, by)


@form("denormals")
def denormals(w: Weaver) -> None:
    x = w.pick_or_new(("float32",))
    w.node(w.random.choice(["Add", "Max", "Mul"]), x, w.constant([w.random.choice([1e-40, -1e-42])], "float32"))


@form("signed zeros")
def signed_zeros(w: Weaver) -> None:
    x = w.pick_or_new(("float32", "float64"))
    zero = w.constant([-0.0], w.type_of(x).dtype)
    w.node(w.random.choice(["Max", "Min", "Mul", "Add"]), x, zero)
