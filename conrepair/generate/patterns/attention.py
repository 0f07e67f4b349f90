"""Attention, and the halves of transformers' blocks."""

from __future__ import annotations

from functools import partial
from math import sqrt

from conrepair.generate.patterns.activations import gelu
from conrepair.generate.patterns.norms import layer_norm, rms_norm
from conrepair.generate.patterns.parts import cast, linear, read, scalar, tokens, width
from conrepair.generate.patterns.pattern import of_tokens, pattern, reading
from conrepair.generate.tensors import Range
from conrepair.generate.weaving import Weaver


def heads(w: Weaver, x: str, count: int, order: tuple[int, ...] = (0, 2, 1, 3)) -> str:
    """Tokens split into heads: batch, head, token, width."""
    split = w.node("Reshape", x, shape=[0, 0, count, width(w, x) // count])
    return w.node("Transpose", split, perm=order)


def joined(w: Weaver, x: str) -> str:
    """Heads beside each other again."""
    _, count, _, size = w.type_of(x).shape
    return w.node("Reshape", w.node("Transpose", x, perm=(0, 2, 1, 3)), shape=[0, 0, count * size])


def mask(w: Weaver, x: str) -> str:
    """What keeps tokens from some others, as BERT writes it: 0, or a large negative number."""
    n, length, _ = w.type_of(x).shape
    wide = w.node("Unsqueeze", w.node("Unsqueeze", w.new("int64", (n, length), Range(0, 1)), axes=[1]), axes=[2])
    return w.node("Mul", w.node("Sub", scalar(w, 1.0), cast(w, wide, "float32")), scalar(w, -10000.0))


@of_tokens("scaled attention", "inductor:fuse_attention", "onnxruntime:MatMulScaleFusion", "xla:softmax-rewriter")
def scaled_attention(w: Weaver, q: str) -> None:
    n, _, depth = w.type_of(q).shape
    k, v = w.new("float32", (n, 3, depth)), w.new("float32", (n, 3, depth))
    scores = f"MatMul(q, Transpose(k, perm=(0, 2, 1))) / {sqrt(depth)!r}"
    w.write(f"MatMul(Softmax({scores}, axis=-1), v)", q=q, k=k, v=v)


_of_pairs, _of_fours = (reading(partial(tokens, by=parts)) for parts in (2, 4))  # whose width is divided so


@_of_pairs("masked attention", "inductor:fuse_attention", "onnxruntime:MatmulTransposeFusion")
def masked_attention(w: Weaver, q: str) -> None:
    split = heads(w, q, 2)
    scores = "MatMul(x, Transpose(x, perm=(0, 1, 3, 2))) + hidden"
    joined(w, w.write(f"MatMul(Softmax({scores}, axis=-1), x)", x=split, hidden=mask(w, q)))


@of_tokens("causal attention", "inductor:fuse_attention")
def causal_attention(w: Weaver, q: str) -> None:
    scores = w.node("MatMul", q, w.node("Transpose", q, perm=(0, 2, 1)))
    length = width(w, scores)
    seen = w.node("Trilu", w.constant([[1] * length] * length), upper=0)
    hidden = w.node("Where", cast(w, seen, "bool"), scores, scalar(w, -1e9))
    w.node("MatMul", w.node("Softmax", hidden, axis=-1), q)


@_of_fours("attention of grouped heads", "inductor:fuse_attention")
def grouped_heads(w: Weaver, q: str) -> None:
    n, length, depth = w.type_of(q).shape
    k = w.node("Unsqueeze", w.new("float32", (n, 2, length, depth // 4)), axes=[2])
    repeated = w.node("Expand", k, shape=[n, 2, 2, length, depth // 4])
    keys = w.node("Reshape", repeated, shape=[n, 4, length, depth // 4])
    scores = w.node("MatMul", heads(w, q, 4), w.node("Transpose", keys, perm=(0, 1, 3, 2)))
    w.node("MatMul", w.node("Softmax", scores, axis=-1), keys)


@_of_fours("attention of BERT", "inductor:fuse_attention", "onnxruntime:MatMulScaleFusion")
def bert_attention(w: Weaver, x: str) -> None:
    depth = width(w, x)
    normal = layer_norm(w, x)
    q = heads(w, linear(w, normal, depth), 2)
    k = heads(w, linear(w, normal, depth), 2, (0, 2, 3, 1))
    v = heads(w, linear(w, normal, depth), 2)
    scores = w.node("Div", w.node("MatMul", q, k), scalar(w, sqrt(depth // 2)))
    weights = w.node("Softmax", w.node("Add", scores, mask(w, x)), axis=-1)
    w.node("Add", linear(w, joined(w, w.node("MatMul", weights, v)), depth), normal)


@_of_pairs("attention by one product", "inductor:split_cat")
def packed_attention(w: Weaver, x: str) -> None:
    depth = width(w, x)
    packed = linear(w, x, 3 * depth)
    q, k, v = w.nodes("Split", packed, outputs=3, axis=2, split=[depth] * 3)
    scores = w.node("MatMul", heads(w, q, 2), heads(w, k, 2, (0, 2, 3, 1)))
    joined(w, w.node("MatMul", w.node("Softmax", scores, axis=-1), heads(w, v, 2)))


@pattern("attention over an image", "onnxruntime:AttentionFusion", "inductor:fuse_attention")
def image_attention(w: Weaver) -> None:
    x = w.new("float32", (1, 4, 2, 2))
    flat = w.node("Transpose", w.node("Reshape", x, shape=[1, 4, -1]), perm=(0, 2, 1))
    packed = w.node("Reshape", linear(w, flat, 12, bias=False), shape=[1, 4, 3, 2, 2])
    q, k, v = w.nodes("Split", packed, outputs=3, axis=2, split=[1] * 3)
    q, v = (w.node("Squeeze", w.node("Transpose", item, perm=(2, 0, 3, 1, 4)), axes=[0]) for item in (q, v))
    k = w.node("Transpose", w.node("Squeeze", k, axes=[2]), perm=(0, 2, 3, 1))
    scores = w.node("Softmax", w.node("MatMul", w.node("Mul", q, scalar(w, 0.7)), k), axis=-1)
    read(w, linear(w, joined(w, w.node("MatMul", scores, v)), 4))


@of_tokens("feed-forward half of a block", "onnxruntime:SkipLayerNormFusion", "inductor:addmm")
def feed_forward(w: Weaver, x: str) -> None:
    inner = gelu(w, linear(w, layer_norm(w, x), 8))
    layer_norm(w, w.node("Add", linear(w, inner, width(w, x)), x))


@of_tokens("feed-forward half with a gate", "onnxruntime:SimplifiedLayerNormFusion")
def gated_feed_forward(w: Weaver, x: str) -> None:
    normal = rms_norm(w, x)
    gate = linear(w, normal, 4, bias=False)
    both = w.node("Mul", w.node("Mul", gate, w.node("Sigmoid", gate)), linear(w, normal, 4, bias=False))
    w.node("Add", linear(w, both, width(w, x), bias=False), x)


@_of_pairs("rotary positions", "inductor:split_cat", "xla:algsimp")
def rotary(w: Weaver, x: str) -> None:
    _, length, depth = w.type_of(x).shape
    half = depth // 2
    cos, sin = (w.weight(length, depth) for _ in range(2))
    first = w.node("Slice", x, starts=[0], ends=[half], axes=[2])
    second = w.node("Slice", x, starts=[half], ends=[2**63 - 1], axes=[2])
    turned = w.node("Concat", w.node("Neg", second), first, axis=-1)
    w.node("Add", w.node("Mul", x, cos), w.node("Mul", turned, sin))


@pattern("embeddings", "onnxruntime:SkipLayerNormFusion", "tflite:EmbeddingLookup")
def embeddings(w: Weaver) -> None:
    ids = w.new("int64", (2, 4), Range(0, 9))
    segments = w.new("int64", (2, 4), Range(0, 1))
    words = w.node("Gather", w.weight(10, 8), ids)
    places = w.node("Gather", w.weight(6, 8), w.constant([[0, 1, 2, 3]] * 2))
    both = w.node("Add", w.node("Add", words, places), w.node("Gather", w.weight(2, 8), segments))
    layer_norm(w, both)
