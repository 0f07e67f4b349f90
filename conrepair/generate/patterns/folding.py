"""What is computed before the network runs, once instead of twice, or not at all."""

from __future__ import annotations

from conrepair.generate.patterns.parts import FLOAT, cast, made, read, scalar, width
from conrepair.generate.patterns.pattern import equation, of_any, of_real, of_several, of_tokens, pattern, reading
from conrepair.generate.tensors import FLOATS, NUMERIC
from conrepair.generate.weaving import Weaver

_FOLDED = "onnxruntime:ConstantFolding"


def _real(w: Weaver) -> str:
    return w.pick_or_new(FLOATS, rank=range(1, 5))


equation(
    "constants added up",
    "x + a * Exp(b)",
    *(_FOLDED, "relax:FoldConstant", "xla:constant-folding", "inductor:constant_fold"),
)
equation(
    "reciprocal and product",
    "1 / (Abs(x) + 1) * Tanh(x)",
    *("onnxruntime:DivMulFusion", "xla:algsimp", "inductor:pointwise"),
)
equation("choice by what is not", "Where(Not(x < 0.5), x, -x)", "onnxruntime:NotWhereFusion", "xla:algsimp")
equation("exp and log", "t = Tanh(x); Sqrt(Log(Exp(t)) * t)", "xla:algsimp", "inductor:pointwise", of=_real)
equation(
    "identities in between",
    "Abs(Identity(Identity(-x)))",
    *("onnxruntime:EliminateIdentity", "inductor:remove_noop_ops"),
    of=_real,
)


@pattern("constant that is moved", _FOLDED, "xla:constant-folding")
def moved_constant(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=range(2, 5))
    turned = w.node("Transpose", w.weight(width(w, x), 1), perm=(1, 0))
    w.node("Mul", w.node("Add", x, turned), w.node("Unsqueeze", w.weight(width(w, x)), axes=[0]))


@pattern("filled constant", _FOLDED, "inductor:constant_fold_uniform_value", "xla:algsimp")
def filled(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=range(1, 4))
    zeros = w.node("ConstantOfShape", w.constant(list(w.type_of(x).shape)))
    w.node("Add", w.node("Mul", x, w.node("Cos", zeros)), zeros)


@of_tokens("shape taken apart and put together", _FOLDED, "onnxruntime:ReshapeFusion")
def shape(w: Weaver, x: str) -> None:
    sizes = [w.node("Gather", w.node("Shape", x), w.constant(axis), axis=0) for axis in (0, 1)]
    parts = [w.node("Unsqueeze", size, axes=[0]) for size in sizes]
    w.node("Reshape", x, w.node("Concat", *parts, w.constant([1]), w.constant([-1]), axis=0))


@of_any("shape of a cast", "onnxruntime:PreShapeNodeElimination", _FOLDED)
def shape_of_cast(w: Weaver, x: str) -> None:
    sizes = w.node("Shape", cast(w, x, "int32"))
    w.node("Reshape", w.node("Abs", x), sizes)


@of_real("size by the shape", "xla:algsimp")
def mean_by_shape(w: Weaver, x: str) -> None:
    count = cast(w, w.node("Size", x), "float32")
    w.node("Div", w.node("ReduceSum", x, keepdims=0), count)


@of_any("expression twice", "onnxruntime:CommonSubexpressionElimination", "relax:EliminateCommonSubexpr", "xla:cse")
def twice(w: Weaver, x: str) -> None:
    op = w.random.choice(["Sigmoid", "Tanh", "Abs"])
    w.node("Mul", w.node("Add", w.node(op, x), x), w.node("Add", w.node(op, x), x))


@of_any("constants that are equal", "onnxruntime:ConstantSharing")
def equal_constants(w: Weaver, x: str) -> None:
    for _ in range(w.random.randint(2, 4)):
        x = w.node("Mul", w.node("Tanh", x), scalar(w, 0.5, x))


@pattern("casts in a row", "onnxruntime:CastChainElimination", "inductor:pointless_convert", "xla:convert-mover")
def casts(w: Weaver) -> None:
    x = made(w, ("float32", "int32"))
    wide = cast(w, x, w.random.choice(["float64", "int64", "int16"]))
    read(w, cast(w, wide, w.type_of(x).dtype))


@pattern("half precision between casts", "inductor:pointless_convert", "xla:simplify-fp-conversions")
def halves(w: Weaver) -> None:
    x = w.node("Tanh", w.pick_or_new(FLOAT, rank=range(1, 5)))
    half = cast(w, x, "float16")
    w.node("Add", cast(w, w.node("Abs", half), "float32"), cast(w, half, "float32"))


@pattern("own cast before operators", "onnxruntime:CastElimination", "inductor:remove_noop_ops")
def own_cast(w: Weaver) -> None:
    x = w.pick_or_new(NUMERIC, rank=range(1, 5))
    w.node("Add", cast(w, x, w.type_of(x).dtype), x)


_of_made = reading(lambda w: made(w, FLOATS))


@_of_made("nothing added, times one", "onnxruntime:NoopElimination", "xla:algsimp", "inductor:remove_noop_ops")
def noops(w: Weaver, x: str) -> None:
    plus = w.node(w.random.choice(["Add", "Sub"]), x, scalar(w, 0, x))
    w.node("Abs", w.node(w.random.choice(["Mul", "Div"]), plus, scalar(w, 1, x)))


@of_any("dropout in between", "onnxruntime:EliminateDropout", "inductor:remove_noop_ops")
def dropout(w: Weaver, x: str) -> None:
    w.node("Abs", w.node("Dropout", w.node("Tanh", x), scalar(w, 0.25)))


@_of_made("whole slice in between", "onnxruntime:EliminateSlice", "inductor:remove_noop_ops", "xla:algsimp")
def whole_slice(w: Weaver, x: str) -> None:
    w.node("Abs", w.node("Slice", x, starts=[0], ends=[2**63 - 1], axes=[0], steps=[1]))


@_of_made("expanded to its own shape", "onnxruntime:ExpandElimination", "xla:algsimp", "inductor:remove_noop_ops")
def own_expand(w: Weaver, x: str) -> None:
    w.node("Abs", w.node("Expand", x, shape=list(w.type_of(x).shape)))


@of_real("factor taken out", "xla:algsimp", "inductor:pointwise")
def distributed(w: Weaver, x: str) -> None:
    factor = w.new("float32", (width(w, x),))
    w.node("Add", w.node("Mul", x, factor), w.node("Mul", w.node("Sin", x), factor))


@of_real("powers that are products", "xla:algsimp", "inductor:pointwise", "tflite:LowerPow")
def powers(w: Weaver, x: str) -> None:
    square = w.node("Pow", x, scalar(w, 2.0))
    w.node("Pow", w.node("Add", square, scalar(w, 1.0)), scalar(w, w.random.choice((0.5, -1.0, 3.0))))


@of_several("result that nobody needs", "relax:DeadCodeElimination", "xla:dce", "inductor:dce")
def unused(w: Weaver, x: str) -> None:
    first, *rest = w.nodes("Split", x, outputs=2, axis=0, split=[1, w.type_of(x).shape[0] - 1])
    w.draft.hidden.update(rest)
    w.node("Tanh", first)
