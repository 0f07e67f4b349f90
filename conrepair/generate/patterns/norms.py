"""Normalizations: written out, and with what stands before them."""

from __future__ import annotations

from conrepair.generate.patterns.parts import image, width
from conrepair.generate.patterns.pattern import equation, of_image, of_tokens, pattern, rows
from conrepair.generate.weaving import Weaver


def layer_norm(w: Weaver, x: str) -> str:
    """With constant factors."""
    return w.node("LayerNormalization", x, w.weight(width(w, x)), w.weight(width(w, x)), axis=-1)


def rms_norm(w: Weaver, x: str) -> str:
    """Written out, with a constant factor."""
    text = "x / Sqrt(ReduceMean(Pow(x, 2), axes=(-1,)) + 1e-5) * scale"
    return w.write(text, x=x, scale=w.weight(width(w, x)))


equation(
    "layer norm written out",
    "d = x - ReduceMean(x, axes=(-1,)); d / Sqrt(ReduceMean(Pow(d, 2), axes=(-1,)) + 1e-5) * scale + shift",
    "onnxruntime:LayerNormFusionL1",
    of=rows,
)
equation(
    "l2 norm written out", "x / Sqrt(Max(ReduceSum(x * x, axes=(-1,)), 1e-6))", "tflite:L2Normalization", of=rows
)
equation(
    "instance norm written out",
    "d = x - ReduceMean(x, axes=(2, 3)); d * Reciprocal(Sqrt(ReduceMean(d * d, axes=(2, 3)) + 1e-3))",
    *("tflite:InstanceNorm", "inductor:welford"),
    of=image,
)


@pattern("rms norm written out", "onnxruntime:SimplifiedLayerNormFusion", "inductor:rms_norm")
def written_rms_norm(w: Weaver) -> None:
    rms_norm(w, rows(w))


@of_tokens("layer norm of a sum", "onnxruntime:SkipLayerNormFusion", "inductor:welford")
def skip_layer_norm(w: Weaver, x: str) -> None:
    layer_norm(w, w.node("Add", x, w.node("Tanh", x)))


@of_tokens("layer norm of a sum and a bias", "onnxruntime:SkipLayerNormFusion", "inductor:welford")
def bias_skip_layer_norm(w: Weaver, x: str) -> None:
    n, _, depth = w.type_of(x).shape
    product = w.node("MatMul", x, w.weight(n, depth, depth))  # of three axes: no Gemm with the sum
    layer_norm(w, w.node("Add", w.node("Add", product, w.weight(depth)), x))


@of_tokens("rms norm of a sum", "onnxruntime:SimplifiedLayerNormFusion")
def skip_rms_norm(w: Weaver, x: str) -> None:
    rms_norm(w, w.node("Add", x, w.node("Sigmoid", x)))


@of_image("batch norm written out", "tflite:FuseBatchNorm", "inductor:pointwise")
def written_batch_norm(w: Weaver, x: str) -> None:
    shape = (w.type_of(x).shape[1], 1, 1)
    constants = {name: w.weight(*shape) for name in ("mean", "scale", "shift")}
    text = "(x - mean) / Sqrt(variance + 1e-3) * scale + shift"
    w.write(text, x=x, variance=w.weight(*shape, low=0.1), **constants)


@of_image("instance norm by its operator", "inductor:welford", "tflite:InstanceNorm")
def one_operator(w: Weaver, x: str) -> None:
    count = w.type_of(x).shape[1]
    w.node("InstanceNormalization", x, w.weight(count), w.weight(count))


@of_image("batch norm alone", "relax:DecomposeOpsForInference", "xla:batchnorm_expander")
def batch_norm(w: Weaver, x: str) -> None:
    shape = (w.type_of(x).shape[1],)
    w.node("BatchNormalization", x, *(w.weight(*shape) for _ in range(3)), w.weight(*shape, low=0.1))
