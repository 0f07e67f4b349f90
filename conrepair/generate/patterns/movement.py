"""Operators that move elements: what's pushed past others, merged, or cancels."""

from __future__ import annotations

from conrepair.generate.patterns.parts import FLOAT, image, scalar, width
from conrepair.generate.patterns.pattern import of_any, of_image, of_matrix, of_several, of_table, of_tokens, pattern
from conrepair.generate.tensors import FLOATS
from conrepair.generate.weaving import Weaver

_TURNS = "onnxruntime:TransposeOptimizer"


def _order(w: Weaver, x: str) -> tuple[int, ...]:
    rank = w.type_of(x).rank
    return tuple(w.random.sample(range(rank), rank))


def _back(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))


@pattern("transpose pushed past elementwise operators", _TURNS, "xla:reshape-mover", "tflite:PushTranspose")
def past_elementwise(w: Weaver) -> None:
    x = w.pick_or_new(FLOATS, rank=range(2, 5), least=2)
    order = _order(w, x)
    turned = w.node("Transpose", x, perm=order)
    moved = w.node("Add", w.node("Abs", turned), w.weight(width(w, turned), dtype=w.type_of(x).dtype))
    w.node("Transpose", moved, perm=_back(order))


@pattern("transpose pushed past a reduction", _TURNS, "xla:algsimp", "tflite:PushTranspose")
def past_reduction(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=(3, 4), least=2)
    turned = w.node("Transpose", x, perm=_order(w, x))
    w.node("Relu", w.node(w.random.choice(["ReduceMean", "ReduceMax"]), turned, axes=(1, -1), keepdims=0))


@pattern("transpose pushed past a softmax", _TURNS)
def past_softmax(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=(3, 4), least=2)
    order = _order(w, x)
    w.node("Transpose", w.node("Softmax", w.node("Transpose", x, perm=order), axis=1), perm=_back(order))


@of_matrix("transpose pushed past a concat", _TURNS, "inductor:split_cat", "relax:ReorderPermuteDimsAfterConcat")
def past_concat(w: Weaver, x: str) -> None:
    parts = [w.node("Transpose", item, perm=(1, 0)) for item in (x, w.new("float32", w.type_of(x).shape))]
    w.node("Relu", w.node("Concat", *parts, axis=0))


@pattern("pool between transposes", "xla:algsimp")
def past_pool(w: Weaver) -> None:
    x = image(w, channels=2)
    inner = w.node("MaxPool", w.node("Transpose", x, perm=(0, 3, 1, 2)), kernel_shape=(2, 2))
    w.node("Transpose", inner, perm=(0, 2, 3, 1))


@of_table("reshapes in a row", "onnxruntime:ReshapeFusion", "xla:algsimp", "tflite:RemoveRedundantReshape")
def reshapes(w: Weaver, x: str) -> None:
    flat = w.node("Reshape", x, shape=[-1])
    wide = w.node("Unsqueeze", flat, axes=[0])
    w.node("Reshape", wide, shape=list(w.type_of(x).shape)[::-1])


@of_table("squeezed and unsqueezed", "xla:algsimp", "tflite:ReorderReshape")
def squeezed(w: Weaver, x: str) -> None:
    w.node("Squeeze", w.node("Unsqueeze", w.node("Unsqueeze", x, axes=[1]), axes=[0]), axes=[0])


@of_tokens("reshape past elementwise operators", "xla:reshape-mover", "relax:RewriteDataflowReshape")
def reshape_moved(w: Weaver, x: str) -> None:
    flat = w.node("Reshape", x, shape=[-1, width(w, x)])
    w.node("Reshape", w.node("Tanh", flat), shape=list(w.type_of(x).shape))


@pattern("slices to depth", "onnxruntime:SliceConcatToSpaceToDepthFusion", "tflite:SpaceToDepth")
def focus(w: Weaver) -> None:
    x = w.new("float32", (1, w.random.randint(1, 3), 2 * w.random.randint(1, 3), 2 * w.random.randint(1, 3)))
    corners = [(0, 0), (0, 1), (1, 0), (1, 1)]
    w.random.shuffle(corners)
    end = w.random.choice([2**31 - 1, 2**63 - 1])
    parts = [w.node("Slice", x, starts=list(at), ends=[end] * 2, axes=[2, 3], steps=[2, 2]) for at in corners]
    w.node("Concat", *parts, axis=1)


@pattern("slices in a row", "xla:algsimp", "inductor:split_cat")
def slices(w: Weaver) -> None:
    x = w.pick_or_new(FLOATS, rank=range(1, 5), least=3)
    inner = w.node("Slice", x, starts=[1], ends=[2**31 - 1], axes=[-1])
    w.node("Slice", inner, starts=[-1], ends=[-(2**31)], axes=[-1], steps=[-1])


@of_several("split and joined", "inductor:split_cat", "xla:algsimp")
def split_joined(w: Weaver, x: str) -> None:
    length = w.type_of(x).shape[0]
    first, second = w.nodes("Split", x, outputs=2, axis=0, split=[1, length - 1])
    order = (first, second) if w.random.random() < 0.5 else (second, first)
    w.node("Concat", *order, axis=0)


@of_any("concat of concats", "inductor:split_cat", "xla:algsimp", "tflite:FlattenConcat")
def concats(w: Weaver, x: str) -> None:
    inner = w.node("Concat", x, w.node("Neg", x), axis=0)
    w.node("Concat", inner, w.node("Abs", x), axis=0)


@of_several("slice of a concat", "inductor:cat_slice_cat", "xla:algsimp", "xla:slice-sinker")
def slice_of_concat(w: Weaver, x: str) -> None:
    length = w.type_of(x).shape[0]
    joined = w.node("Concat", x, w.node("Tanh", x), axis=0)
    part = w.node("Slice", joined, starts=[0], ends=[length], axes=[0])
    w.node("Concat", joined, part, axis=0)


@pattern("gathers of every place", "onnxruntime:GatherSliceToSplitFusion", "inductor:split_cat")
def gathers(w: Weaver) -> None:
    x = w.node("Relu", w.new("float32", (2, 3, w.random.randint(1, 4))))
    parts = [w.node("Gather", x, w.constant(place), axis=1) for place in range(3)]
    w.node("Add", w.node("Add", parts[0], parts[1]), parts[2])


@pattern("slices of every place", "onnxruntime:GatherSliceToSplitFusion", "inductor:split_cat")
def sliced_apart(w: Weaver) -> None:
    x = w.node("Relu", w.new("float32", (2, 4, w.random.randint(1, 4))))
    halves = [w.node("Slice", x, starts=[place], ends=[place + 2], axes=[1], steps=[1]) for place in (0, 2)]
    w.node("Mul", *halves)


@of_several("gather of a range", "onnxruntime:GatherToSliceFusion", "xla:gather-simplifier")
def gather_range(w: Weaver, x: str) -> None:
    places = w.node("Range", start=0, limit=w.type_of(x).shape[0] - 1, delta=1)
    w.node("Gather", x, places, axis=0)


@pattern("tiled and sliced", "xla:algsimp", "inductor:pointwise")
def tiled(w: Weaver) -> None:
    x = w.pick_or_new(FLOATS, rank=range(1, 4), least=1)
    rank = w.type_of(x).rank
    wide = w.node("Tile", x, repeats=[2] * rank)
    w.node("Slice", wide, starts=[0], ends=[w.type_of(x).shape[0]], axes=[0])


@pattern("expanded for a product", "inductor:pointwise", "xla:algsimp", "onnxruntime:ExpandElimination")
def expanded(w: Weaver) -> None:
    x = w.pick_or_new(FLOATS, rank=range(1, 4))
    made = w.type_of(x)
    wide = w.node("Expand", x, shape=[2, *made.shape])
    w.node("Mul", wide, w.new(made.dtype, (2, *made.shape)))


@pattern("channels shuffled", "tflite:RemoveRedundantReshape", "inductor:permute_linear_fusion")
def shuffle(w: Weaver) -> None:
    x = w.new("float32", (1, 4, w.random.randint(1, 4), 3))
    n, c, *space = w.type_of(x).shape
    apart = w.node("Reshape", x, shape=[n, 2, c // 2, *space])
    w.node("Reshape", w.node("Transpose", apart, perm=(0, 2, 1, 3, 4)), shape=[n, c, *space])


@pattern("padded, then sliced", "xla:algsimp", "inductor:pointwise")
def pad_slice(w: Weaver) -> None:
    x = w.node("Pad", image(w), pads=[0, 0, 1, 1, 0, 0, 1, 1])
    w.node("Slice", x, starts=[1, 1], ends=[-1, -1], axes=[2, 3])


@of_image("resize between transposes", "onnxruntime:TransposeOptimizer_CPUExecutionProvider")
def past_resize(w: Weaver, x: str) -> None:
    turned = w.node("Transpose", x, perm=(0, 3, 1, 2))
    inner = w.node("Resize", turned, scales=[1.0, 1.0, 2.0, 2.0], mode="nearest")
    w.node("Mul", w.node("Transpose", inner, perm=(0, 2, 3, 1)), scalar(w, 2.0))
