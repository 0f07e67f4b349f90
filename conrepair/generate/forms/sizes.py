"""Sizes that networks seldom have: none, no axes, six of them, and shapes that are computed."""

from __future__ import annotations

from conrepair.generate.forms.form import form, written_forms
from conrepair.generate.tensors import FLOATS
from conrepair.generate.weaving import Weaver

written_forms("""
size of zero:
    x = some(FLOATS); nothing = Slice(x, ints(0), ints(0), ints(0)); other = new(0, tail(x), dtype=dtype(x))
    Concat(one(nothing, nothing + other, nothing * other), x, axis=0)
rank of zero:
    x = some(FLOATS, rank=ANY_RANK); Tanh(ReduceMax(x, keepdims=0)) * new(dtype=dtype(x))
reshape to a computed shape:
    x = some(FLOATS); over(x, Reshape(x, Shape(x)))
shape that is reshaped:
    Reshape(Shape(some(FLOATS)), ints(1, -1)) * ints(2)
""")


@form("rank six")
def six_axes(w: Weaver) -> None:
    x = w.pick(FLOATS, rank=range(2, 5), new=True)
    shape = list(w.type_of(x).shape)
    while len(shape) < 6:
        shape.insert(w.random.randint(0, len(shape)), 1)
    wide = w.node("Reshape", x, w.constant(shape))
    w.node("Transpose", wide, perm=tuple(w.random.sample(range(6), 6)))
