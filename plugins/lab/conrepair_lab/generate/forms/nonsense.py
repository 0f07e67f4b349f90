"""Legal nonsense: what networks have twice or without need, and what they seldom have."""

from __future__ import annotations

from conrepair_lab.generate.forms.form import form, written_forms
from conrepair_lab.generate.settings.ports import NotAllowedError
from conrepair_lab.generate.settings.tensors import FLOATS, INTEGERS, element_type
from conrepair_lab.generate.weaving import Weaver

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


written_forms("""
anything():
    some(ANY_TYPE, rank=ANY_RANK)
number():
    some(NUMERIC, rank=ANY_RANK)
identity transpose:
    x = anything(); over(x, Transpose(x, perm=axes(x)))
cast to its own type:
    x = anything(); over(x, cast(x, dtype(x)))
multiplied by one:
    x = number(); over(x, x * one(1, single(1, x)))
divided by one:
    x = number(); over(x, x / one(1, single(1, x)))
zero added:
    x = number(); zero = one(0, single(0, x)); over(x, one(zero + x, zero + x, x + zero, x - zero))
padded by nothing:
    x = anything(); over(x, Pad(x, ints(repeated(0, 2 * rank(x)))))
whole slice:
    x = anything(); end = one(2147483647, LAST, largest(sizes(x))); count = rank(x)
    over(x, Slice(x, ints(repeated(0, count)), ints(repeated(end, count)), ints(axes(x))))
concat of one:
    x = anything(); over(x, Concat(x, axis=axis(x)))
split into one:
    x = anything(); cut = axis(x); over(x, Split(x, ints(size(x, cut)), axis=cut))
reshape to the same shape:
    x = anything(); over(x, Reshape(x, one(ints(sizes(x)), ints(repeated(0, rank(x))), ints(-1, tail(x)))))
expand that does nothing:
    x = anything(); over(x, Expand(x, one(ints(sizes(x)), ints(repeated(1, rank(x))), ints(1))))
dropout in inference:
    x = some(FLOATS, rank=ANY_RANK); over(x, Dropout(x))
two transposes that cancel:
    x = anything(); order = shuffled(x); over(x, Transpose(Transpose(x, perm=order), perm=back(order)))
""")


@form("two casts that cancel")
def two_casts(w: Weaver) -> None:
    x = w.pick(INTEGERS, new=True)
    wide = w.node("Cast", x, to=element_type("int64" if w.type_of(x).dtype != "uint64" else "uint64"))
    w.takes_over(x, w.node("Cast", wide, to=element_type(w.type_of(x).dtype)))


written_forms("""
dead branch:
    hidden(apply(one("Sigmoid", "Abs", "Neg"), Tanh(some(FLOATS, rank=ANY_RANK))))
one tensor twice:
    x = some(NUMERIC, rank=ANY_RANK); apply(one("Add", "Sub", "Mul", "Max", "Min"), x, x)
shared weight:
    x = some(FLOATS); factor = new(width(x), dtype=dtype(x)); (x + factor) * factor
scalar against one element:
    type = a_type(FLOATS); both = apply(one("Add", "Mul", "Sub"), new(dtype=type), new(1, dtype=type))
    some(dtypes=(type,), rank=ANY_RANK) * both
""")


@form("duplicated node")
def duplicated(w: Weaver) -> None:
    draft = w.draft
    usual = [node for node in draft.nodes if node.piece is None]
    nodes = [node for node in usual if len(node.outputs) == 1 and draft.tensors[node.outputs[0]].free]
    if not nodes:
        raise NotAllowedError("no node can be there twice")
    node = w.random.choice(nodes)
    inputs = [name or None for name in node.inputs]
    w.takes_over(node.outputs[0], w.node(node.op, *inputs, **node.attributes))


@form("input that is an output")
def shown_input(w: Weaver) -> None:
    names = [name for name, tensor in w.draft.sources.items() if tensor.readers]
    if not names:
        raise NotAllowedError("the network has no input")
    w.draft.shown.add(w.random.choice(names))


@form("output that is read")
def shown_inside(w: Weaver) -> None:
    names = [name for name in w.draft.made() if w.draft.tensors[name].readers]
    if not names:
        raise NotAllowedError("nothing inside is read")
    w.draft.shown.add(w.random.choice(names))


@form("several broadcast inputs")
def broadcast(w: Weaver) -> None:
    x = w.pick(("float32",), rank=(3, 4), new=True)
    made = w.type_of(x)
    shapes = (
        tuple(size if place == axis else 1 for place, size in enumerate(made.shape)) for axis in range(made.rank)
    )
    parts = [w.new(made.dtype, shape) for shape in shapes]
    w.node(w.random.choice(["Sum", "Max", "Min", "Mean"]), x, *parts)
