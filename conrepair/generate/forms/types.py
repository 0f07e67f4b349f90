"""Element types beside each other, and values at their limits."""

from __future__ import annotations

from conrepair.generate.forms.form import written_forms

written_forms("""
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
