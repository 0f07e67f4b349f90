"""What is computed before the network runs, once instead of twice, or not at all."""

from __future__ import annotations

from conrepair_lab.generate.patterns.pattern import written_patterns

written_patterns("""
constants added up: onnxruntime:ConstantFolding relax:FoldConstant xla:constant-folding inductor:constant_fold
    x = some(); x + row(x) * Exp(row(x))
reciprocal and product: onnxruntime:DivMulFusion xla:algsimp inductor:pointwise
    x = some(); one(1 / (Abs(x) + 1) * Tanh(x), 1 / x * like(x))
choice by what is not: onnxruntime:NotWhereFusion xla:algsimp
    x = some(); Where(Not(x < 0.5), x, -x)
exp and log: xla:algsimp inductor:pointwise
    t = Tanh(some(FLOATS)); Sqrt(Log(Exp(t)) * t)
identities in between: onnxruntime:EliminateIdentity inductor:remove_noop_ops
    Abs(Identity(Identity(-some(FLOATS))))
constant that is moved: onnxruntime:ConstantFolding xla:constant-folding
    x = some(rank=(2, 3, 4)); d = width(x)
    (x + Transpose(weight(d, 1), perm=(1, 0))) * Unsqueeze(weight(d), axes=(0,))
filled constant: onnxruntime:ConstantFolding inductor:constant_fold_uniform_value xla:algsimp
    x = some(rank=(1, 2, 3)); zeros = ConstantOfShape(ints(sizes(x))); x * Cos(zeros) + zeros
shape taken apart and put together: onnxruntime:ConstantFolding onnxruntime:ReshapeFusion
    x = tokens(); first = Gather(Shape(x), indices=0, axis=0); second = Gather(Shape(x), indices=1, axis=0)
    parts = Concat(Unsqueeze(first, axes=(0,)), Unsqueeze(second, axes=(0,)), ints(1), ints(-1), axis=0)
    Reshape(x, parts)
shape of a cast: onnxruntime:PreShapeNodeElimination onnxruntime:ConstantFolding
    x = some(FLOATS); sizes = Shape(cast(x, "int32")); Reshape(Abs(x), sizes)
size by the shape: xla:algsimp
    x = some(); ReduceSum(x, keepdims=0) / cast(Size(x), "float32")
expression twice: onnxruntime:CommonSubexpressionElimination relax:EliminateCommonSubexpr xla:cse
    op = one("Sigmoid", "Tanh", "Abs"); x = some(FLOATS); (apply(op, x) + x) * (apply(op, x) + x)
constants that are equal: onnxruntime:ConstantSharing
    two = Tanh(Tanh(some(FLOATS)) * 0.5) * 0.5; three = Tanh(two) * 0.5; one(two, three, Tanh(three) * 0.5)
casts in a row: onnxruntime:CastChainElimination inductor:pointless_convert xla:convert-mover
    x = made(dtypes=("float32", "int32")); read(cast(cast(x, one("float64", "int64", "int16")), dtype(x)))
half precision between casts: inductor:pointless_convert xla:simplify-fp-conversions
    half = cast(Tanh(some()), "float16"); cast(Abs(half), "float32") + cast(half, "float32")
own cast before operators: onnxruntime:CastElimination inductor:remove_noop_ops
    x = some(NUMERIC); cast(x, dtype(x)) + x
nothing added, times one: onnxruntime:NoopElimination xla:algsimp inductor:remove_noop_ops
    x = made(FLOATS); same = one(x + 0, x - 0); Abs(one(same * 1, same / 1))
dropout in between: onnxruntime:EliminateDropout inductor:remove_noop_ops
    Abs(Dropout(Tanh(some(FLOATS)), constant(0.25, "float32")))
whole slice in between: onnxruntime:EliminateSlice inductor:remove_noop_ops xla:algsimp
    Abs(Slice(made(FLOATS), starts=(0,), ends=(LAST,), axes=(0,), steps=(1,)))
expanded to its own shape: onnxruntime:ExpandElimination xla:algsimp inductor:remove_noop_ops
    x = made(FLOATS); Abs(Expand(x, shape=sizes(x)))
factor taken out: xla:algsimp inductor:pointwise
    x = some(); factor = new(width(x)); x * factor + Sin(x) * factor
powers that are products: xla:algsimp inductor:pointwise tflite:LowerPow
    Pow(Pow(some(), 2) + 1, one(0.5, -1, 3))
result that nobody needs: relax:DeadCodeElimination xla:dce inductor:dce
    x = some(FLOATS, least=2); first, rest = Split(x, outputs=2, axis=0, split=(1, size(x, 0) - 1))
    all(hidden(rest), Tanh(first))
""")
