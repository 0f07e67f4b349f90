"""Attention, and the halves of transformers' blocks."""

from __future__ import annotations

from conrepair_lab.generate.patterns.pattern import written_patterns

written_patterns("""
heads(x, count):  # tokens split into heads: batch, head, token, width
    Transpose(Reshape(x, shape=(0, 0, count, width(x) // count)), perm=(0, 2, 1, 3))
turned_heads(x, count):
    Transpose(Reshape(x, shape=(0, 0, count, width(x) // count)), perm=(0, 2, 3, 1))
joined(x):  # heads beside each other again
    n, h, t, d = sizes(x); Reshape(Transpose(x, perm=(0, 2, 1, 3)), shape=(0, 0, h * d))
mask(x):  # what keeps tokens from some others, as BERT writes it: 0, or a large negative number
    n, t, d = sizes(x); seen = Unsqueeze(Unsqueeze(new(n, t, dtype="int64", values=(0, 1)), axes=(1,)), axes=(2,))
    (1 - cast(seen, "float32")) * -10000
attended(q, k, v):
    MatMul(Softmax(MatMul(q, k), axis=-1), v)
scaled attention: inductor:fuse_attention onnxruntime:MatMulScaleFusion xla:softmax-rewriter
    q = tokens(); n, t, d = sizes(q); k = new(n, 3, d); v = new(n, 3, d)
    MatMul(Softmax(MatMul(q, Transpose(k, perm=(0, 2, 1))) / sqrt(d), axis=-1), v)
masked attention: inductor:fuse_attention onnxruntime:MatmulTransposeFusion
    q = tokens(2); x = heads(q, 2)
    joined(MatMul(Softmax(MatMul(x, Transpose(x, perm=(0, 1, 3, 2))) + mask(q), axis=-1), x))
causal attention: inductor:fuse_attention
    q = tokens(); scores = MatMul(q, Transpose(q, perm=(0, 2, 1))); t = width(scores)
    seen = Trilu(filled(1, t, t), upper=0)
    MatMul(Softmax(Where(cast(seen, "bool"), scores, -1e9), axis=-1), q)
attention of grouped heads: inductor:fuse_attention
    q = tokens(4); n, t, d = sizes(q); k = Unsqueeze(new(n, 2, t, d // 4), axes=(2,))
    keys = Reshape(Expand(k, shape=(n, 2, 2, t, d // 4)), shape=(n, 4, t, d // 4))
    attended(heads(q, 4), Transpose(keys, perm=(0, 1, 3, 2)), keys)
attention of BERT: inductor:fuse_attention onnxruntime:MatMulScaleFusion
    x = tokens(4); d = width(x); normal = layer_norm(x)
    q = heads(linear(normal, d), 2); k = turned_heads(linear(normal, d), 2); v = heads(linear(normal, d), 2)
    weights = Softmax(MatMul(q, k) / sqrt(d // 2) + mask(x), axis=-1)
    linear(joined(MatMul(weights, v)), d) + normal
attention by one product: inductor:split_cat
    x = tokens(2); d = width(x); q, k, v = Split(linear(x, 3 * d), outputs=3, axis=2, split=(d, d, d))
    joined(attended(heads(q, 2), turned_heads(k, 2), heads(v, 2)))
attention over an image: onnxruntime:AttentionFusion inductor:fuse_attention
    flat = Transpose(Reshape(new(1, 4, 2, 2), shape=(1, 4, -1)), perm=(0, 2, 1))
    packed = Reshape(product(flat, 12), shape=(1, 4, 3, 2, 2))
    q, k, v = Split(packed, outputs=3, axis=2, split=(1, 1, 1))
    queries = Squeeze(Transpose(q, perm=(2, 0, 3, 1, 4)), axes=(0,))
    values = Squeeze(Transpose(v, perm=(2, 0, 3, 1, 4)), axes=(0,))
    read(linear(joined(attended(queries * 0.7, Transpose(Squeeze(k, axes=(2,)), perm=(0, 2, 3, 1)), values)), 4))
feed-forward half of a block: onnxruntime:SkipLayerNormFusion inductor:addmm
    x = tokens(); layer_norm(linear(gelu(linear(layer_norm(x), 8)), width(x)) + x)
feed-forward half with a gate: onnxruntime:SimplifiedLayerNormFusion
    x = tokens(); normal = rms_norm(x)
    gated = silu(product(normal, 4)) * product(normal, 4)
    product(gated, width(x)) + x
rotary positions: inductor:split_cat xla:algsimp
    x = tokens(2); n, t, d = sizes(x); half = d // 2
    first = Slice(x, starts=(0,), ends=(half,), axes=(2,)); second = Slice(x, starts=(half,), ends=(LAST,), axes=(2,))
    x * weight(t, d) + Concat(-second, first, axis=-1) * weight(t, d)
embeddings: onnxruntime:SkipLayerNormFusion tflite:EmbeddingLookup
    words = Gather(weight(10, 8), new(2, 4, dtype="int64", values=(0, 9)))
    places = Gather(weight(6, 8), constant(values=((0, 1, 2, 3), (0, 1, 2, 3))))
    layer_norm(words + places + Gather(weight(2, 8), new(2, 4, dtype="int64", values=(0, 1))))
""")
