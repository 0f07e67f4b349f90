"""Sizes that networks seldom have: none, no axes, six of them, and shapes that are computed."""

from __future__ import annotations

from conrepair.generate.forms.form import form
from conrepair.generate.tensors import FLOATS
from conrepair.generate.weaving import Weaver


@form("size of zero")
def empty(w: Weaver) -> None:
    x = w.pick_or_new(FLOATS, rank=range(1, 5))
    made = w.type_of(x)
    nothing = w.node("Slice", x, w.constant([0]), w.constant([0]), w.constant([0]))
    other = w.new(made.dtype, (0, *made.shape[1:]))
    behind = w.node(w.random.choice(["Add", "Mul", "Concat"]), nothing, other) if w.random.random() < 0.5 else nothing
    w.node("Concat", behind, x, axis=0)


@form("rank of zero")
def scalar(w: Weaver) -> None:
    x = w.pick_or_new(FLOATS)
    made = w.type_of(x)
    total = w.node("ReduceMax", x, keepdims=0)
    w.node("Mul", w.node("Tanh", total), w.new(made.dtype, ()))


@form("rank six")
def six_axes(w: Weaver) -> None:
    x = w.pick_or_new(FLOATS, rank=range(2, 5))
    shape = list(w.type_of(x).shape)
    while len(shape) < 6:
        shape.insert(w.random.randint(0, len(shape)), 1)
    wide = w.node("Reshape", x, w.constant(shape))
    w.node("Transpose", wide, perm=tuple(w.random.sample(range(6), 6)))


@form("reshape to a computed shape")
def computed_shape(w: Weaver) -> None:
    x = w.pick_or_new(FLOATS, rank=range(1, 5))
    w.takes_over(x, w.node("Reshape", x, w.node("Shape", x)))


@form("shape that is reshaped")
def reshaped_shape(w: Weaver) -> None:
    x = w.pick_or_new(FLOATS, rank=range(1, 5))
    shape = w.node("Reshape", w.node("Shape", x), w.constant([1, -1]))
    w.node("Mul", shape, w.constant([2]))
