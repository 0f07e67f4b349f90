"""Normalizations: written out, and with what stands before them."""

from __future__ import annotations

from conrepair.generate.patterns.parts import FLOAT, image, scalar, tokens, width
from conrepair.generate.patterns.pattern import pattern
from conrepair.generate.weaving import Weaver


def layer_norm(w: Weaver, x: str) -> str:
    """With constant factors."""
    return w.node("LayerNormalization", x, w.weight(width(w, x)), w.weight(width(w, x)), axis=-1)


def rms_norm(w: Weaver, x: str) -> str:
    """Written out, with a constant factor."""
    mean = w.node("ReduceMean", w.node("Pow", x, scalar(w, 2.0)), axes=(-1,))
    root = w.node("Sqrt", w.node("Add", mean, scalar(w, 1e-5)))
    return w.node("Mul", w.node("Div", x, root), w.weight(width(w, x)))


@pattern("layer norm written out", "onnxruntime:LayerNormFusionL1")
def written_layer_norm(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=(2, 3), least=2)
    centred = w.node("Sub", x, w.node("ReduceMean", x, axes=(-1,)))
    square = w.node("Pow", centred, scalar(w, 2.0))
    root = w.node("Sqrt", w.node("Add", w.node("ReduceMean", square, axes=(-1,)), scalar(w, 1e-5)))
    scaled = w.node("Mul", w.node("Div", centred, root), w.weight(width(w, x)))
    w.node("Add", scaled, w.weight(width(w, x)))


@pattern("rms norm written out", "onnxruntime:SimplifiedLayerNormFusion", "inductor:rms_norm")
def written_rms_norm(w: Weaver) -> None:
    rms_norm(w, w.pick_or_new(FLOAT, rank=(2, 3), least=2))


@pattern("layer norm of a sum", "onnxruntime:SkipLayerNormFusion", "inductor:welford")
def skip_layer_norm(w: Weaver) -> None:
    x = tokens(w)
    layer_norm(w, w.node("Add", x, w.node("Tanh", x)))


@pattern("layer norm of a sum and a bias", "onnxruntime:SkipLayerNormFusion", "inductor:welford")
def bias_skip_layer_norm(w: Weaver) -> None:
    x = tokens(w)
    n, _, depth = w.type_of(x).shape
    product = w.node("MatMul", x, w.weight(n, depth, depth))  # of three axes: no Gemm with the sum
    layer_norm(w, w.node("Add", w.node("Add", product, w.weight(depth)), x))


@pattern("rms norm of a sum", "onnxruntime:SimplifiedLayerNormFusion")
def skip_rms_norm(w: Weaver) -> None:
    x = tokens(w)
    rms_norm(w, w.node("Add", x, w.node("Sigmoid", x)))


@pattern("batch norm written out", "tflite:FuseBatchNorm", "inductor:pointwise")
def written_batch_norm(w: Weaver) -> None:
    x = image(w)
    shape = (w.type_of(x).shape[1], 1, 1)
    root = w.node("Sqrt", w.node("Add", w.weight(*shape, low=0.1), scalar(w, 1e-3)))
    normal = w.node("Div", w.node("Sub", x, w.weight(*shape)), root)
    w.node("Add", w.node("Mul", normal, w.weight(*shape)), w.weight(*shape))


@pattern("instance norm written out", "tflite:InstanceNorm", "inductor:welford")
def instance_norm(w: Weaver) -> None:
    x = image(w)
    mean = w.node("ReduceMean", x, axes=(2, 3))
    centred = w.node("Sub", x, mean)
    variance = w.node("ReduceMean", w.node("Mul", centred, centred), axes=(2, 3))
    w.node("Mul", centred, w.node("Reciprocal", w.node("Sqrt", w.node("Add", variance, scalar(w, 1e-3)))))


@pattern("l2 norm written out", "tflite:L2Normalization")
def l2_norm(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=(2, 3), least=2)
    total = w.node("ReduceSum", w.node("Mul", x, x), axes=(-1,))
    w.node("Div", x, w.node("Sqrt", w.node("Max", total, scalar(w, 1e-6))))


@pattern("instance norm by its operator", "inductor:welford", "tflite:InstanceNorm")
def one_operator(w: Weaver) -> None:
    x = image(w)
    count = w.type_of(x).shape[1]
    w.node("InstanceNormalization", x, w.weight(count), w.weight(count))


@pattern("batch norm alone", "relax:DecomposeOpsForInference", "xla:batchnorm_expander")
def batch_norm(w: Weaver) -> None:
    x = image(w)
    shape = (w.type_of(x).shape[1],)
    w.node("BatchNormalization", x, *(w.weight(*shape) for _ in range(3)), w.weight(*shape, low=0.1))
