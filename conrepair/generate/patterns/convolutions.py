"""Convolutions and what is folded into them."""

from __future__ import annotations

from typing import Any

from conrepair.generate.patterns.parts import conv, image, scalar
from conrepair.generate.patterns.pattern import equation, of_image, pattern
from conrepair.generate.weaving import Weaver

_ACTIVATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Relu", {}),
    ("Sigmoid", {}),
    ("Tanh", {}),
    ("LeakyRelu", {"alpha": 0.1}),
    ("Clip", {"min": 0.0, "max": 6.0}),
    ("HardSigmoid", {"alpha": 0.2, "beta": 0.5}),
)


def activation(w: Weaver, x: str) -> str:
    """One that runtimes compute together with what is before it."""
    op, said = w.random.choice(_ACTIVATIONS)
    return w.node(op, x, **said)


def batch_norm(w: Weaver, x: str) -> str:
    """With constant statistics."""
    count = w.type_of(x).shape[1]
    return w.node("BatchNormalization", x, *(w.weight(count) for _ in range(3)), w.weight(count, low=0.1))


@pattern("conv and batch norm", "onnxruntime:ConvBNFusion", "relax:FoldBatchnormToConv2D", "tflite:FuseBatchNorm")
def conv_batch_norm(w: Weaver) -> None:
    batch_norm(w, conv(w, image(w), bias=w.random.random() < 0.5))


@pattern("conv, batch norm and activation", "onnxruntime:ConvBNFusion", "inductor:efficient_conv_bn_eval")
def conv_batch_norm_activation(w: Weaver) -> None:
    activation(w, batch_norm(w, conv(w, image(w), bias=False, strides=(2, 2))))


@pattern("conv and mul", "onnxruntime:ConvMulFusion", "tflite:FuseMulIntoConv", "inductor:binary_folding")
def conv_mul(w: Weaver) -> None:
    x = conv(w, image(w))
    w.node("Mul", x, w.weight(w.type_of(x).shape[1], 1, 1))


@pattern("conv and add", "onnxruntime:ConvAddFusion", "tflite:FuseAddIntoConv", "inductor:binary_folding")
def conv_add(w: Weaver) -> None:
    x = conv(w, image(w), bias=w.random.random() < 0.5)
    w.node("Add", x, w.weight(w.type_of(x).shape[1], 1, 1))


@pattern("conv and div", "inductor:binary_folding", "tflite:FuseBinaryOpToConv")
def conv_div(w: Weaver) -> None:
    x = conv(w, image(w), size=1)
    w.node("Sub", w.node("Div", x, w.weight(w.type_of(x).shape[1], 1, 1, low=0.5)), scalar(w, 0.5))


@of_image("mul before conv", "tflite:FuseBinaryOpToFollowingConv", "relax:FoldConstant")
def mul_conv(w: Weaver, x: str) -> None:
    conv(w, w.node("Mul", x, w.weight(w.type_of(x).shape[1], 1, 1)), pads=(0, 0, 0, 0))


@pattern("conv and activation", "onnxruntime:ConvActivationFusion", "onnxruntime:NchwcTransformer", "relax:FuseOps")
def conv_activation(w: Weaver) -> None:
    activation(w, conv(w, image(w)))


@of_image("conv, add and relu", "onnxruntime:ConvAddActivationFusion", "onnxruntime:NchwcTransformer")
def conv_add_relu(w: Weaver, x: str) -> None:
    first = conv(w, x, 4)
    w.node("Relu", w.node("Add", conv(w, x, 4), first))


@of_image("conv without padding, add and activation", "onnxruntime:ConvAddActivationFusion")
def conv_add_activation(w: Weaver, x: str) -> None:
    n, c, *space = w.type_of(x).shape
    weight = w.weight(3, c, 1, 1)
    w.node("Relu", w.node("Add", w.node("Conv", x, weight), w.new("float32", (n, 3, *space))))


@pattern("blocked convs", "onnxruntime:NchwcTransformer", "relax:ConvertLayout")
def blocked(w: Weaver) -> None:
    x = w.node("MaxPool", conv(w, image(w), 16), kernel_shape=(2, 2))
    joined = w.node("Concat", x, conv(w, x, 16, 1), axis=1)
    w.node("GlobalAveragePool", w.node("Relu", conv(w, joined, 16, 1)))


@pattern("depthwise conv", "tflite:DepthwiseConv", "onnxruntime:NchwcTransformer", "xla:convolution-group-converter")
def depthwise(w: Weaver) -> None:
    channels = w.random.choice((3, 8, 16))
    x = conv(w, image(w), channels, 1)
    activation(w, conv(w, x, channels, group=channels))


@of_image("pad and conv", "onnxruntime:Pad_Fusion", "tflite:FusePadIntoConv", "xla:algsimp")
def pad_conv(w: Weaver, x: str) -> None:
    sides = [w.random.randint(0, 2) for _ in range(4)]
    padded = w.node("Pad", x, pads=[0, 0, *sides[:2], 0, 0, *sides[2:]])
    conv(w, padded, pads=(0, 0, 0, 0))


@pattern("pad and pool", "onnxruntime:Pad_Fusion", "xla:algsimp")
def pad_pool(w: Weaver) -> None:
    padded = w.node("Pad", w.node("Relu", image(w)), pads=[0, 0, 1, 1, 0, 0, 1, 1])
    if w.random.random() < 0.5:
        w.node("MaxPool", padded, kernel_shape=(3, 3), strides=(2, 2))
    else:
        w.node("AveragePool", padded, kernel_shape=(3, 3), count_include_pad=1)


@of_image("transposed conv and batch norm", "tflite:TransposeConvBias", "onnxruntime:ConvBNFusion")
def transposed_conv(w: Weaver, x: str) -> None:
    made = w.node("ConvTranspose", x, w.weight(w.type_of(x).shape[1], 4, 2, 2), strides=(2, 2))
    w.node("Relu", batch_norm(w, made))


@of_image("convs of one image", "onnxruntime:NchwcTransformer", "xla:conv-canonicalization")
def parallel_convs(w: Weaver, x: str) -> None:
    w.node("Concat", conv(w, x, 4, 1), conv(w, x, 4, 3), conv(w, x, 2, 1), axis=1)


@of_image("conv between transposes", "tflite:TransposeConv", "relax:ConvertLayout")
def channels_last(w: Weaver, x: str) -> None:
    inner = w.node("Relu", conv(w, w.node("Transpose", x, perm=(0, 3, 1, 2)), 4))
    w.node("Transpose", inner, perm=(0, 2, 3, 1))


equation("conv and silu", "x * Sigmoid(x)", "inductor:pointwise", of=lambda w: conv(w, image(w)))
