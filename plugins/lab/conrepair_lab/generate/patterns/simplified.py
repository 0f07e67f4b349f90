"""What simplifiers of ONNX files take out and join: chains of one operator, and operators without effect."""

from __future__ import annotations

from conrepair_lab.generate.patterns.pattern import pattern, written_patterns
from conrepair_lab.generate.settings.tensors import FLOATS
from conrepair_lab.generate.weaving import Weaver

written_patterns("""
largest of a monotone function: onnxoptimizer:eliminate_nop_monotone_argmax
    x = some(least=2); y = apply(one("Exp", "Log", "Sqrt", "Softmax", "LogSoftmax"), x)
    ArgMax(y, axis=axis(x), keepdims=drawn(0, 1))
one operator again: onnxoptimizer:eliminate_consecutive_idempotent_ops
    op = one("Abs", "Ceil", "Floor", "Relu", "Round", "Sign"); apply(op, apply(op, some()))
axis dropped and put back: onnxoptimizer:fuse_consecutive_reduce_unsqueeze
    op = one("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL1", "ReduceL2")
    x = some(least=2); axes = some_axes(x); Unsqueeze(apply(op, x, axes=axes, keepdims=0), axes=axes)
one move after another: onnxoptimizer:fuse_consecutive_transposes
    x = table(); Transpose(Transpose(x, perm=shuffled(x)), perm=shuffled(x))
logarithm of a softmax: onnxoptimizer:fuse_consecutive_log_softmax
    x = some(least=2); Log(Softmax(x, axis=axis(x)))
shape of parts: onnxoptimizer:eliminate_slice_after_shape onnxoptimizer:eliminate_shape_gather
    x = table(); r = rank(x); begin = axis(x); shape = Shape(x)
    end = Slice(shape, starts=(begin - r,), ends=(r,), axes=(0,))
    one(end, Gather(shape, ints(begin, drawn(-r, r - 1)), axis=0)) + drawn(0, 2)
sizes put together: onnxoptimizer:fuse_concat_into_reshape
    x = table(); first = Unsqueeze(Gather(Shape(x), indices=0, axis=0), axes=(0,))
    Reshape(x, Concat(first, one(ints(-1), ints(0, -1), ints(size(x, 1), -1)), axis=0))
operator without effect: onnxoptimizer:eliminate_nop_pad onnxoptimizer:eliminate_nop_concat
    x = table(); r = rank(x); concat = Concat(x, axis=drawn(-r, r - 1)); pad = Pad(x, pads=repeated(0, 2 * r))
    split = Split(x, axis=0, split=(size(x, 0),)); tile = Tile(x, repeats=repeated(1, r))
    read(one(pad, concat, tile, split, Flatten(x, axis=1), Reshape(x, shape=sizes(x))))
pad of a pool: onnxoptimizer:fuse_pad_into_pool onnxruntime:Pad_Fusion
    x = Pad(image(), pads=(0, 0, drawn(0, 2), drawn(0, 2), 0, 0, drawn(0, 2), drawn(0, 2)))
    op = one("MaxPool", "AveragePool")
    own = apply(op, x, kernel_shape=(2, 2), pads=(drawn(0, 1), drawn(0, 1), drawn(0, 1), drawn(0, 1)))
    one(apply(op, x, kernel_shape=(2, 2)), own)
weights of one input: onnxoptimizer:fuse_qkv
    x = rows(); units = one(3, 4)
    all(product(x, units) * 0.5, product(x, units) * 0.5, product(x, units) * 0.5)
product and sum, of vectors too: onnxoptimizer:fuse_matmul_add_bias_into_gemm
    x = matrix(); n, d = sizes(x)
    product(x, 3) + one(weight(3), weight(1, 3), weight(1), weight(n, 1), weight(1, 1, 3))
""")


@pattern("reshape that copies a size", "onnxoptimizer:eliminate_consecutive_idempotent_ops")
def copied_size(w: Weaver) -> None:
    x = w.new(w.dtype(FLOATS), tuple(w.random.sample([2, 3, 4], 3)))
    sizes = w.random.choice([(4, 6), (6, 4), (2, 12), (3, 8), (12, 2), (1, 24)])
    inner = w.node("Reshape", x, shape=list(sizes))
    w.node("Reshape", inner, shape=w.random.choice([[0, -1], [0, 0], [-1, sizes[1]], [0, 0, 1]]))


@pattern("squeezes in a row", "onnxoptimizer:fuse_consecutive_squeezes", "onnxoptimizer:fuse_consecutive_unsqueezes")
def squeezes(w: Weaver) -> None:
    x = w.pick(FLOATS, rank=range(1, 4), least=2, new=True)
    for op, places in (("Unsqueeze", (0, -1)), ("Unsqueeze", (0, 1)), ("Squeeze", ()), ("Squeeze", ())):
        single = [axis for axis, size in enumerate(w.type_of(x).shape) if size == 1]
        x = w.node(op, x, axes=[w.random.choice(places or single)])
