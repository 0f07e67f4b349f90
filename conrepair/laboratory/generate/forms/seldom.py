"""What networks seldom have: no elements, no axes, six of them, computed shapes, mixed types, values at limits."""

from __future__ import annotations

from conrepair.laboratory.generate.forms.form import form, written_forms
from conrepair.laboratory.generate.settings.tensors import FLOATS
from conrepair.laboratory.generate.weaving import Weaver

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
float16 beside float32:
    x = some(rank=ANY_RANK); cast(cast(Tanh(x), "float16") * new(width(x), dtype="float16"), "float32") + x
bfloat16 beside float32:
    x = some(rank=ANY_RANK); cast(cast(Tanh(x), "bfloat16"), "float32") + x
weight in bfloat16:
    x = some(rank=(2, 3, 4)); moved = Transpose(new(width(x), size(x, -2), dtype="bfloat16"), perm=(1, 0))
    x * cast(moved, "float32")
limits of int64:
    x = some(dtypes=("int64",)); op = one("Max", "Min", "BitwiseAnd", "BitwiseOr")
    apply(op, x, ints(one(LAST, -LAST - 1, 2147483648, -2147483649)))
negative divisor:  # the smallest integer by -1 is a signal
    real = some(); whole = some(dtypes=(one("int64", "int32"),)); by = one(-2, -3, -7)
    one(real / single(by, real), whole / single(by, whole), whole % single(by, whole))
denormals:
    x = some(rank=ANY_RANK); apply(one("Add", "Max", "Mul"), x, single(one(1e-40, -1e-42), x))
signed zeros:
    x = some(dtypes=("float32", "float64"), rank=ANY_RANK)
    apply(one("Max", "Min", "Mul", "Add"), x, single(MINUS_ZERO, x))
""")


@form("rank six")
def six_axes(w: Weaver) -> None:
    x = w.pick(FLOATS, rank=range(2, 5), new=True)
    shape = list(w.type_of(x).shape)
    while len(shape) < 6:
        shape.insert(w.random.randint(0, len(shape)), 1)
    wide = w.node("Reshape", x, w.constant(shape))
    w.node("Transpose", wide, perm=tuple(w.random.sample(range(6), 6)))
