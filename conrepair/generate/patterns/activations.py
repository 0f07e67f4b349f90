"""Activation functions written out, as exporters write them."""

from __future__ import annotations

from math import pi, sqrt

from conrepair.generate.patterns.parts import FLOAT, made, read, scalar, width
from conrepair.generate.patterns.pattern import equation, of_image, of_real, of_tokens, pattern
from conrepair.generate.weaving import Weaver

_ERF = f"(Erf(x / {sqrt(2)!r}) + 1)"
_ORDERS = (f"x * {_ERF} * 0.5", f"x * 0.5 * {_ERF}", f"x * ({_ERF} * 0.5)")


def gelu(w: Weaver, x: str) -> str:
    """x/2 * (1 + erf(x / sqrt 2)), in one of the orders in which exporters write it, and something that reads it."""
    text = w.random.choice(_ORDERS)
    written = w.write(text, x=x)
    return written if text == _ORDERS[-1] else read(w, written)


@pattern("gelu by erf", "onnxruntime:GeluFusionL1", "onnxruntime:GeluFusionL2", "tflite:Gelu")
def erf_gelu(w: Weaver) -> None:
    gelu(w, made(w))


@of_tokens("gelu behind a bias", "onnxruntime:BiasGeluFusion", "onnxruntime:GeluApproximation")
def bias_gelu(w: Weaver, x: str) -> None:
    gelu(w, w.node("Add", w.node("Tanh", x), w.weight(width(w, x))))


@pattern("gelu by tanh", "onnxruntime:FastGeluFusion", "tflite:Gelu")
def tanh_gelu(w: Weaver) -> None:
    read(w, w.write(f"x * 0.5 * (Tanh((x + 0.044715 * Pow(x, 3)) * {sqrt(2 / pi)!r}) + 1)", x=made(w)))


equation("gelu by sigmoid", "x * Sigmoid(x * 1.702)", "onnxruntime:QuickGeluFusion")
equation("silu", "x * Sigmoid(x)", "onnxruntime:QuickGeluFusion", "inductor:pointwise", "xla:logistic-expander")
equation("sigmoid by exp", "1 / (1 + Exp(-Tanh(x)))", "xla:logistic-expander", "relax:FastMathTransform")
equation("hard swish by clip", "x * (Clip(Relu(x + 3), 0, 6) / 6)", "tflite:HardSwish", "onnxruntime:FuseReluClip")
equation("hard swish by hard sigmoid", f"x * HardSigmoid(x, alpha={1 / 6!r}, beta=0.5)", "tflite:HardSwish")
equation("mish by softplus", "x * Tanh(Softplus(x))", "inductor:pointwise", "relax:FastMathTransform")
equation(
    "softmax written out",
    "e = Exp(x - ReduceMax(x, axes=(-1,))); e / ReduceSum(e, axes=(-1,))",
    *("inductor:online_softmax", "xla:softmax-rewriter", "relax:FastMathTransform"),
    of=lambda w: w.pick_or_new(FLOAT, rank=range(2, 5)),
)


@pattern("relu and clip", "onnxruntime:FuseReluClip", "tflite:FuseRelu6")
def relu_clip(w: Weaver) -> None:
    x = w.pick_or_new((*FLOAT, "float16"), rank=range(1, 5))
    low = w.random.choice((-1.0, 0.0, 0.5))
    w.node("Clip", w.node("Relu", x), scalar(w, low, x), scalar(w, 6.0, x))


@of_real("leaky relu by max", "tflite:LeakyRelu", "inductor:pointwise")
def leaky(w: Weaver, x: str) -> None:
    w.node("Max", x, w.node("Mul", x, scalar(w, w.random.choice((0.01, 0.2)))))


@of_image("prelu by two relus", "tflite:PRelu")
def prelu(w: Weaver, x: str) -> None:
    slope = w.weight(w.type_of(x).shape[1], 1, 1)
    w.write("Relu(x) + Relu(-x) * -slope", x=x, slope=slope)


@pattern("softmax behind a mask", "inductor:online_softmax")
def masked_softmax(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=4, least=2)
    n, _, rows, columns = w.type_of(x).shape
    w.node("Softmax", w.node("Add", x, w.new("float32", (n, 1, rows, columns))), axis=-1)


@pattern("fast functions in a row", "relax:FastMathTransform")
def fast_functions(w: Weaver) -> None:
    x = w.node("Tanh", w.pick_or_new(FLOAT, rank=range(1, 5)))
    w.node(w.random.choice(["Erf", "Tanh"]), w.node("Exp", x))
