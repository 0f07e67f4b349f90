"""Operators that move elements: what's pushed past others, merged, or cancels."""

from __future__ import annotations

from conrepair_lab.generate.patterns.pattern import written_patterns

written_patterns("""
table():
    some(FLOATS, rank=(2, 3, 4))
transpose pushed past elementwise operators: onnxruntime:TransposeOptimizer xla:reshape-mover tflite:PushTranspose
    x = some(FLOATS, rank=(2, 3, 4), least=2); order = shuffled(x); turned = Transpose(x, perm=order)
    Transpose(Abs(turned) + row(turned), perm=back(order))
transpose pushed past a reduction: onnxruntime:TransposeOptimizer xla:algsimp tflite:PushTranspose
    x = some(rank=(3, 4), least=2); turned = Transpose(x, perm=shuffled(x))
    Relu(apply(one("ReduceMean", "ReduceMax"), turned, axes=(1, -1), keepdims=0))
transpose pushed past a softmax: onnxruntime:TransposeOptimizer
    x = some(rank=(3, 4), least=2); order = shuffled(x)
    Transpose(Softmax(Transpose(x, perm=order), axis=1), perm=back(order))
transpose pushed past a concat: onnxruntime:TransposeOptimizer inductor:split_cat relax:ReorderPermuteDimsAfterConcat
    x = matrix(); Relu(Concat(Transpose(x, perm=(1, 0)), Transpose(like(x), perm=(1, 0)), axis=0))
pool between transposes: xla:algsimp
    turned = Transpose(image(2), perm=(0, 3, 1, 2))
    Transpose(MaxPool(turned, kernel_shape=(2, 2)), perm=(0, 2, 3, 1))
reshapes in a row: onnxruntime:ReshapeFusion xla:algsimp tflite:RemoveRedundantReshape
    x = table(); Reshape(Unsqueeze(Reshape(x, shape=(-1,)), axes=(0,)), shape=reversed(sizes(x)))
squeezed and unsqueezed: xla:algsimp tflite:ReorderReshape
    Squeeze(Unsqueeze(Unsqueeze(table(), axes=(1,)), axes=(0,)), axes=(0,))
reshape past elementwise operators: xla:reshape-mover relax:RewriteDataflowReshape
    x = tokens(); Reshape(Tanh(Reshape(x, shape=(-1, width(x)))), shape=sizes(x))
slices to depth: onnxruntime:SliceConcatToSpaceToDepthFusion tflite:SpaceToDepth
    x = new(1, drawn(1, 3), 2 * drawn(1, 3), 2 * drawn(1, 3)); end = one(2147483647, LAST)
    a, b, c, d = in_any_order(ints(0, 0), ints(0, 1), ints(1, 0), ints(1, 1))
    Concat(corner(x, a, end), corner(x, b, end), corner(x, c, end), corner(x, d, end), axis=1)
corner(x, begin, end):
    Slice(x, begin, ends=(end, end), axes=(2, 3), steps=(2, 2))
slices in a row: xla:algsimp inductor:split_cat
    inner = Slice(some(FLOATS, least=3), starts=(1,), ends=(2147483647,), axes=(-1,))
    Slice(inner, starts=(-1,), ends=(-2147483648,), axes=(-1,), steps=(-1,))
split and joined: inductor:split_cat xla:algsimp
    x = some(FLOATS, least=2); a, b = Split(x, outputs=2, axis=0, split=(1, size(x, 0) - 1))
    one(Concat(a, b, axis=0), Concat(b, a, axis=0))
concat of concats: inductor:split_cat xla:algsimp tflite:FlattenConcat
    x = some(FLOATS); Concat(Concat(x, -x, axis=0), Abs(x), axis=0)
slice of a concat: inductor:cat_slice_cat xla:algsimp xla:slice-sinker
    x = some(FLOATS, least=2); joined = Concat(x, Tanh(x), axis=0)
    Concat(joined, Slice(joined, starts=(0,), ends=(size(x, 0),), axes=(0,)), axis=0)
gathers of every place: onnxruntime:GatherSliceToSplitFusion inductor:split_cat
    x = Relu(new(2, 3, drawn(1, 4)))
    Gather(x, indices=0, axis=1) + Gather(x, indices=1, axis=1) + Gather(x, indices=2, axis=1)
slices of every place: onnxruntime:GatherSliceToSplitFusion inductor:split_cat
    x = Relu(new(2, 4, drawn(1, 4))); first = Slice(x, starts=(0,), ends=(2,), axes=(1,), steps=(1,))
    first * Slice(x, starts=(2,), ends=(4,), axes=(1,), steps=(1,))
gather of a range: onnxruntime:GatherToSliceFusion xla:gather-simplifier
    x = some(FLOATS, least=2); Gather(x, Range(start=0, limit=size(x, 0) - 1, delta=1), axis=0)
tiled and sliced: xla:algsimp inductor:pointwise
    x = some(FLOATS, rank=(1, 2, 3)); tiled = Tile(x, repeats=repeated(2, rank(x)))
    Slice(tiled, starts=(0,), ends=(size(x, 0),), axes=(0,))
expanded for a product: inductor:pointwise xla:algsimp onnxruntime:ExpandElimination
    x = some(FLOATS, rank=(1, 2, 3)); wide = Expand(x, shape=shape(2, sizes(x))); wide * like(wide)
channels shuffled: tflite:RemoveRedundantReshape inductor:permute_linear_fusion
    h = drawn(1, 4); apart = Reshape(new(1, 4, h, 3), shape=(1, 2, 2, h, 3))
    Reshape(Transpose(apart, perm=(0, 2, 1, 3, 4)), shape=(1, 4, h, 3))
padded, then sliced: xla:algsimp inductor:pointwise
    padded = Pad(image(), pads=(0, 0, 1, 1, 0, 0, 1, 1)); Slice(padded, starts=(1, 1), ends=(-1, -1), axes=(2, 3))
resize between transposes: onnxruntime:TransposeOptimizer_CPUExecutionProvider
    turned = Transpose(image(), perm=(0, 3, 1, 2))
    Transpose(Resize(turned, scales=(1, 1, 2, 2), mode="nearest"), perm=(0, 2, 3, 1)) * 2
""")
