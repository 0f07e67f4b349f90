"""Products of matrices, and what is folded into them or re-ordered around them."""

from __future__ import annotations

from conrepair.generate.patterns.parts import FLOAT, linear, scalar, width
from conrepair.generate.patterns.pattern import matrix, of_matrix, of_rows, of_tokens, pattern
from conrepair.generate.tensors import Range
from conrepair.generate.weaving import Weaver


@of_rows("product and bias", "onnxruntime:MatMulAddFusion", "inductor:addmm", "tflite:FuseFullyConnectedAndAdd")
def product_bias(w: Weaver, x: str) -> None:
    linear(w, x, w.random.choice((1, 3, 8)))


@of_matrix("dense layers", "onnxruntime:GemmActivationFusion", "tflite:FuseFullyConnectedAndRelu", "relax:FuseOps")
def dense(w: Weaver, x: str) -> None:
    units = w.random.choice((4, 8))
    inner = w.node("Gemm", x, w.weight(width(w, x), units), w.weight(units))
    op = w.random.choice(["Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Softplus"])
    w.node("Gemm", w.node(op, inner), w.weight(3, units), w.weight(3), transB=1)


@of_matrix("gemm and sum", "onnxruntime:GemmSumFusion", "inductor:addmm")
def gemm_sum(w: Weaver, x: str) -> None:
    made = w.node("Gemm", x, w.weight(width(w, x), 4))
    w.node("Sum", made, w.new("float32", w.type_of(made).shape))


@pattern("gemm of a transpose", "onnxruntime:GemmTransposeFusion", "xla:transpose-folding")
def gemm_transpose(w: Weaver) -> None:
    x = w.node("Transpose", matrix(w), perm=(1, 0))
    made = w.node("Gemm", x, w.weight(width(w, x), 3), w.weight(3))
    if w.random.random() < 0.5:
        w.node("Transpose", made, perm=(1, 0))


@of_matrix("gemm and batch norm", "onnxruntime:MatMul_BatchNormalization_Fusion", "tflite:FuseBatchNorm")
def gemm_batch_norm(w: Weaver, x: str) -> None:
    made = w.node("MatMul", x, w.weight(width(w, x), 4))
    w.node("BatchNormalization", made, *(w.weight(4) for _ in range(3)), w.weight(4, low=0.1))


@pattern(
    "product of transposes", "onnxruntime:MatmulTransposeFusion", "xla:transpose-folding", "relax:FuseTransposeMatmul"
)
def product_transposed(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=(2, 3, 4), least=2)
    made = w.type_of(x)
    other = w.new("float32", (*made.shape[:-2], w.random.choice((2, 3)), made.shape[-1]))
    order = (*range(made.rank - 2), made.rank - 1, made.rank - 2)
    w.node("MatMul", x, w.node("Transpose", other, perm=order))


@of_rows("scaled product", "onnxruntime:MatMulScaleFusion", "xla:algsimp")
def scaled(w: Weaver, x: str) -> None:
    made = w.type_of(x)
    op = w.random.choice(["Mul", "Div"])
    left = w.node(op, x, scalar(w, 0.25))
    product = w.node("MatMul", left, w.new("float32", (*made.shape[:-2], made.shape[-1], 3)))
    w.node("Mul", product, scalar(w, 2.0))


@pattern("product of a product", "relax:AdjustMatmulOrder", "inductor:b2b_gemm", "xla:dot-decomposer")
def chain(w: Weaver) -> None:
    x = w.new("float32", (w.random.randint(1, 2), w.random.randint(6, 9)))
    inner = w.random.randint(6, 9)
    w.node("MatMul", x, w.node("MatMul", w.new("float32", (width(w, x), inner)), w.new("float32", (inner, 8))))


@of_matrix("product with two weights", "xla:dot-decomposer", "inductor:b2b_gemm")
def weights_chain(w: Weaver, x: str) -> None:
    w.node("MatMul", w.node("MatMul", x, w.weight(width(w, x), 2)), w.weight(2, 8))


@of_matrix("product of a sum", "relax:ExpandMatmulOfSum", "xla:algsimp")
def sum_product(w: Weaver, x: str) -> None:
    depth = width(w, x)
    w.node("MatMul", x, w.node("Add", w.new("float32", (depth, 4)), w.new("float32", (depth, 4))))


@of_rows("products of one tensor", "relax:CombineParallelMatmul", "xla:dot-merger", "inductor:group_batch_fusion")
def parallel(w: Weaver, x: str) -> None:
    weights = [w.new("float32", (width(w, x), 4)) for _ in range(w.random.randint(2, 3))]
    first, *others = [w.node("MatMul", x, weight) for weight in weights]
    for other in others:
        first = w.node("Add", first, other)


@of_matrix("sum of two products", "inductor:mm_plus_mm", "xla:dot-merger")
def two_products(w: Weaver, x: str) -> None:
    shape = (width(w, x), 4)
    other = w.node("MatMul", w.node("Neg", x), w.new("float32", shape))
    w.node("Add", w.node("MatMul", x, w.new("float32", shape)), other)


@of_matrix("product with columns that are chosen", "relax:ReorderTakeAfterMatmul", "inductor:decompose_mm")
def chosen_columns(w: Weaver, x: str) -> None:
    columns = w.node("Gather", w.weight(width(w, x), 8), w.new("int64", (3,), Range(0, 7)), axis=1)
    w.node("MatMul", x, columns)


@of_matrix("product with weights put together", "relax:ReorderPermuteDimsAfterConcat")
def joined_weights(w: Weaver, x: str) -> None:
    parts = [w.node("Transpose", w.new("float32", (2, width(w, x))), perm=(1, 0)) for _ in range(2)]
    w.node("MatMul", x, w.node("Concat", *parts, axis=1))


@of_tokens("products by einsum", "xla:dot-decomposer", "inductor:decompose_bmm")
def einsum(w: Weaver, x: str) -> None:
    n, _, depth = w.type_of(x).shape
    w.node("Einsum", x, w.new("float32", (n, 3, depth)), equation="bqd,bkd->bqk")


@pattern("product with a vector", "inductor:decompose_mm", "xla:algsimp")
def outer(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=2, least=1)
    column = w.node("MatMul", x, w.weight(width(w, x), 1))
    w.node("MatMul", column, w.weight(1, 4))
