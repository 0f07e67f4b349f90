"""Products of matrices, and what is folded into them or re-ordered around them."""

from __future__ import annotations

from conrepair_lab.generate.patterns.pattern import written_patterns

written_patterns("""
matrix():
    some(rank=2, least=2)
rows():
    some(rank=(2, 3), least=2)
swapped(x):  # its last two axes
    Transpose(x, perm=last_two_swapped(x))
product(x, units):  # with constant weights
    MatMul(x, weight(width(x), units))
linear(x, units):
    product(x, units) + weight(units)
product and bias: onnxruntime:MatMulAddFusion inductor:addmm tflite:FuseFullyConnectedAndAdd
    linear(rows(), one(1, 3, 8))
dense layers: onnxruntime:GemmActivationFusion tflite:FuseFullyConnectedAndRelu relax:FuseOps
    x = matrix(); units = one(4, 8); y = Gemm(x, weight(width(x), units), weight(units))
    active = one(Relu(y), Sigmoid(y), Tanh(y), LeakyRelu(y), Elu(y), Softplus(y))
    Gemm(active, weight(3, units), weight(3), transB=1)
gemm and sum: onnxruntime:GemmSumFusion inductor:addmm
    x = matrix(); y = Gemm(x, weight(width(x), 4)); Sum(y, like(y))
gemm of a transpose: onnxruntime:GemmTransposeFusion xla:transpose-folding
    x = Transpose(matrix(), perm=(1, 0)); y = Gemm(x, weight(width(x), 3), weight(3))
    one(y, Transpose(y, perm=(1, 0)))
gemm and batch norm: onnxruntime:MatMul_BatchNormalization_Fusion tflite:FuseBatchNorm
    batch_norm(product(matrix(), 4))
product of transposes: onnxruntime:MatmulTransposeFusion xla:transpose-folding relax:FuseTransposeMatmul
    x = some(rank=(2, 3, 4), least=2); MatMul(x, swapped(new(front(x), one(2, 3), width(x))))
scaled product: onnxruntime:MatMulScaleFusion xla:algsimp
    x = rows(); MatMul(one(x * 0.25, x / 0.25), new(front(x), width(x), 3)) * 2
product of a product: relax:AdjustMatmulOrder inductor:b2b_gemm xla:dot-decomposer
    d = drawn(6, 9); inner = drawn(6, 9); MatMul(new(drawn(1, 2), d), MatMul(new(d, inner), new(inner, 8)))
product with two weights: xla:dot-decomposer inductor:b2b_gemm
    product(product(matrix(), 2), 8)
product of a sum: relax:ExpandMatmulOfSum xla:algsimp
    x = matrix(); d = width(x); MatMul(x, new(d, 4) + new(d, 4))
products of one tensor: relax:CombineParallelMatmul xla:dot-merger inductor:group_batch_fusion
    x = rows(); d = width(x); two = MatMul(x, new(d, 4)) + MatMul(x, new(d, 4))
    one(two, two + MatMul(x, new(d, 4)))
sum of two products: inductor:mm_plus_mm xla:dot-merger
    x = matrix(); d = width(x); other = MatMul(-x, new(d, 4)); MatMul(x, new(d, 4)) + other
product with columns that are chosen: relax:ReorderTakeAfterMatmul inductor:decompose_mm
    x = matrix(); MatMul(x, Gather(weight(width(x), 8), new(3, dtype="int64", values=(0, 7)), axis=1))
product with weights put together: relax:ReorderPermuteDimsAfterConcat
    x = matrix(); d = width(x)
    MatMul(x, Concat(Transpose(new(2, d), perm=(1, 0)), Transpose(new(2, d), perm=(1, 0)), axis=1))
products by einsum: xla:dot-decomposer inductor:decompose_bmm
    x = tokens(); n, t, d = sizes(x); Einsum(x, new(n, 3, d), equation="bqd,bkd->bqk")
product with a vector: inductor:decompose_mm xla:algsimp
    product(product(some(rank=2), 1), 4)
""")
