"""What simplifiers of ONNX files take out and join: chains of one operator, and operators without effect."""

from __future__ import annotations

from typing import Any

from conrepair.generate.patterns.parts import read, scalar, width
from conrepair.generate.patterns.pattern import of_image, of_matrix, of_real, of_row, of_rows, of_table, pattern
from conrepair.generate.tensors import FLOATS
from conrepair.generate.weaving import Weaver


@of_row("largest of a monotone function", "onnxoptimizer:eliminate_nop_monotone_argmax")
def monotone_argmax(w: Weaver, x: str) -> None:
    op = w.random.choice(["Exp", "Log", "Sqrt", "Softmax", "LogSoftmax"])
    axis = w.random.randrange(w.type_of(x).rank)
    w.node("ArgMax", w.node(op, x), axis=axis, keepdims=w.random.randint(0, 1))


@of_real("one operator again", "onnxoptimizer:eliminate_consecutive_idempotent_ops")
def idempotent(w: Weaver, x: str) -> None:
    op = w.random.choice(["Abs", "Ceil", "Floor", "Relu", "Round", "Sign"])
    w.node(op, w.node(op, x))


@pattern("reshape that copies a size", "onnxoptimizer:eliminate_consecutive_idempotent_ops")
def copied_size(w: Weaver) -> None:
    x = w.new(w.dtype(FLOATS), tuple(w.random.sample([2, 3, 4], 3)))
    sizes = w.random.choice([(4, 6), (6, 4), (2, 12), (3, 8), (12, 2), (1, 24)])
    inner = w.node("Reshape", x, shape=list(sizes))
    w.node("Reshape", inner, shape=w.random.choice([[0, -1], [0, 0], [-1, sizes[1]], [0, 0, 1]]))


@of_row("axis dropped and put back", "onnxoptimizer:fuse_consecutive_reduce_unsqueeze")
def reduce_unsqueeze(w: Weaver, x: str) -> None:
    axes = sorted(w.random.sample(range(rank := w.type_of(x).rank), w.random.randint(1, rank)))
    op = w.random.choice(["ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL1", "ReduceL2"])
    w.node("Unsqueeze", w.node(op, x, axes=axes, keepdims=0), axes=axes)


@of_table("one move after another", "onnxoptimizer:fuse_consecutive_transposes")
def transposes(w: Weaver, x: str) -> None:
    places = list(range(w.type_of(x).rank))
    inner = w.node("Transpose", x, perm=tuple(w.random.sample(places, len(places))))
    w.node("Transpose", inner, perm=tuple(w.random.sample(places, len(places))))


@pattern("squeezes in a row", "onnxoptimizer:fuse_consecutive_squeezes", "onnxoptimizer:fuse_consecutive_unsqueezes")
def squeezes(w: Weaver) -> None:
    x = w.pick_or_new(FLOATS, rank=range(1, 4), least=2)
    wide = w.node(
        "Unsqueeze", w.node("Unsqueeze", x, axes=[w.random.choice([0, -1])]), axes=[w.random.choice([0, 1])]
    )
    single = [axis for axis, size in enumerate(w.type_of(wide).shape) if size == 1]
    narrow = w.node("Squeeze", wide, axes=[w.random.choice(single)])
    single = [axis for axis, size in enumerate(w.type_of(narrow).shape) if size == 1]
    w.node("Squeeze", narrow, axes=[w.random.choice(single)])


@of_row("logarithm of a softmax", "onnxoptimizer:fuse_consecutive_log_softmax")
def log_softmax(w: Weaver, x: str) -> None:
    w.node("Log", w.node("Softmax", x, axis=w.random.randrange(w.type_of(x).rank)))


@of_table("shape of parts", "onnxoptimizer:eliminate_slice_after_shape", "onnxoptimizer:eliminate_shape_gather")
def shape_part(w: Weaver, x: str) -> None:
    rank = w.type_of(x).rank
    sizes = w.node("Shape", x)
    begin = w.random.randrange(rank)
    if w.random.random() < 0.5:
        part = w.node("Slice", sizes, starts=[begin - rank], ends=[rank], axes=[0])
    else:
        part = w.node("Gather", sizes, w.constant([begin, w.random.randrange(-rank, rank)]), axis=0)
    w.node("Add", part, w.constant(w.random.randint(0, 2)))


@of_table("sizes put together", "onnxoptimizer:fuse_concat_into_reshape")
def concat_reshape(w: Weaver, x: str) -> None:
    shape = w.type_of(x).shape
    first = w.node("Unsqueeze", w.node("Gather", w.node("Shape", x), w.constant(0), axis=0), axes=[0])
    last = w.random.choice([[-1], [0, -1], [shape[1], -1]])
    w.node("Reshape", x, w.node("Concat", first, w.constant(last), axis=0))


@of_table("operator without effect", "onnxoptimizer:eliminate_nop_pad", "onnxoptimizer:eliminate_nop_concat")
def without_effect(w: Weaver, x: str) -> None:
    made = w.type_of(x)
    rank = made.rank
    nodes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("Pad", {"pads": [0] * 2 * rank}),
        ("Concat", {"axis": w.random.randrange(-rank, rank)}),
        ("Tile", {"repeats": [1] * rank}),
        ("Split", {"axis": 0, "split": [made.shape[0]]}),
        ("Flatten", {"axis": 1}),
        ("Reshape", {"shape": list(made.shape)}),
    )
    op, said = w.random.choice(nodes)
    read(w, w.node(op, x, **said))


@of_image("pad of a pool", "onnxoptimizer:fuse_pad_into_pool", "onnxruntime:Pad_Fusion")
def pad_pool(w: Weaver, x: str) -> None:
    pads = [0, 0, *(w.random.randint(0, 2) for _ in range(2)), 0, 0, *(w.random.randint(0, 2) for _ in range(2))]
    op = w.random.choice(["MaxPool", "AveragePool"])
    own: dict[str, Any] = {} if w.random.random() < 0.5 else {"pads": tuple(w.random.randint(0, 1) for _ in range(4))}
    w.node(op, w.node("Pad", x, pads=pads), kernel_shape=(2, 2), **own)


@of_rows("weights of one input", "onnxoptimizer:fuse_qkv")
def query_key_value(w: Weaver, x: str) -> None:
    sizes = [width(w, x), w.random.choice([3, 4])]
    for _ in range(3):
        w.node("Mul", w.node("MatMul", x, w.weight(*sizes)), scalar(w, 0.5))


@of_matrix("product and sum, of vectors too", "onnxoptimizer:fuse_matmul_add_bias_into_gemm")
def product_sum(w: Weaver, x: str) -> None:
    product = w.node("MatMul", x, w.weight(width(w, x), 3))
    w.node("Add", product, w.weight(*w.random.choice([(3,), (1, 3), (1,), (w.type_of(x).shape[0], 1), (1, 1, 3)])))
