"""Activation functions written out, as exporters write them."""

from __future__ import annotations

from math import pi, sqrt

from conrepair.generate.patterns.parts import FLOAT, image, made, read, scalar, tokens, width
from conrepair.generate.patterns.pattern import pattern
from conrepair.generate.weaving import Weaver


def gelu(w: Weaver, x: str) -> str:
    """x/2 * (1 + erf(x / sqrt 2)), in one of the orders in which exporters write it, and something that reads it."""
    one = w.node("Add", w.node("Erf", w.node("Div", x, scalar(w, sqrt(2), x))), scalar(w, 1, x))
    half = scalar(w, 0.5, x)
    order = w.random.randrange(3)
    if order == 0:
        return read(w, w.node("Mul", w.node("Mul", x, one), half))
    if order == 1:
        return read(w, w.node("Mul", w.node("Mul", x, half), one))
    return w.node("Mul", x, w.node("Mul", one, half))


@pattern("gelu by erf", "onnxruntime:GeluFusionL1", "onnxruntime:GeluFusionL2", "tflite:Gelu")
def erf_gelu(w: Weaver) -> None:
    gelu(w, made(w))


@pattern("gelu behind a bias", "onnxruntime:BiasGeluFusion", "onnxruntime:GeluApproximation")
def bias_gelu(w: Weaver) -> None:
    x = tokens(w)
    gelu(w, w.node("Add", w.node("Tanh", x), w.weight(width(w, x))))


@pattern("gelu by tanh", "onnxruntime:FastGeluFusion", "tflite:Gelu")
def tanh_gelu(w: Weaver) -> None:
    x = made(w)
    cube = w.node("Mul", scalar(w, 0.044715), w.node("Pow", x, scalar(w, 3.0)))
    inner = w.node("Mul", w.node("Add", x, cube), scalar(w, sqrt(2 / pi)))
    one = w.node("Add", w.node("Tanh", inner), scalar(w, 1.0))
    read(w, w.node("Mul", w.node("Mul", x, scalar(w, 0.5)), one))


@pattern("gelu by sigmoid", "onnxruntime:QuickGeluFusion")
def quick_gelu(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=range(1, 5))
    w.node("Mul", x, w.node("Sigmoid", w.node("Mul", x, scalar(w, 1.702))))


@pattern("silu", "onnxruntime:QuickGeluFusion", "inductor:pointwise", "xla:logistic-expander")
def silu(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=range(1, 5))
    w.node("Mul", x, w.node("Sigmoid", x))


@pattern("sigmoid by exp", "xla:logistic-expander", "relax:FastMathTransform")
def written_sigmoid(w: Weaver) -> None:
    x = w.node("Tanh", w.pick_or_new(FLOAT, rank=range(1, 5)))
    w.node("Div", scalar(w, 1.0), w.node("Add", scalar(w, 1.0), w.node("Exp", w.node("Neg", x))))


@pattern("hard swish by clip", "tflite:HardSwish", "onnxruntime:FuseReluClip")
def clip_hard_swish(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=range(1, 5))
    gate = w.node("Clip", w.node("Relu", w.node("Add", x, scalar(w, 3.0))), scalar(w, 0.0), scalar(w, 6.0))
    w.node("Mul", x, w.node("Div", gate, scalar(w, 6.0)))


@pattern("hard swish by hard sigmoid", "tflite:HardSwish")
def sigmoid_hard_swish(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=range(1, 5))
    w.node("Mul", x, w.node("HardSigmoid", x, alpha=1 / 6, beta=0.5))


@pattern("relu and clip", "onnxruntime:FuseReluClip", "tflite:FuseRelu6")
def relu_clip(w: Weaver) -> None:
    x = w.pick_or_new((*FLOAT, "float16"), rank=range(1, 5))
    low = w.random.choice((-1.0, 0.0, 0.5))
    w.node("Clip", w.node("Relu", x), scalar(w, low, x), scalar(w, 6.0, x))


@pattern("mish by softplus", "inductor:pointwise", "relax:FastMathTransform")
def mish(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=range(1, 5))
    w.node("Mul", x, w.node("Tanh", w.node("Softplus", x)))


@pattern("leaky relu by max", "tflite:LeakyRelu", "inductor:pointwise")
def leaky(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=range(1, 5))
    w.node("Max", x, w.node("Mul", x, scalar(w, w.random.choice((0.01, 0.2)))))


@pattern("prelu by two relus", "tflite:PRelu")
def prelu(w: Weaver) -> None:
    x = image(w)
    slope = w.weight(w.type_of(x).shape[1], 1, 1)
    negative = w.node("Mul", w.node("Relu", w.node("Neg", x)), w.node("Neg", slope))
    w.node("Add", w.node("Relu", x), negative)


@pattern("softmax written out", "inductor:online_softmax", "xla:softmax-rewriter", "relax:FastMathTransform")
def softmax(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=range(2, 5))
    above = w.node("Exp", w.node("Sub", x, w.node("ReduceMax", x, axes=(-1,))))
    w.node("Div", above, w.node("ReduceSum", above, axes=(-1,)))


@pattern("softmax behind a mask", "inductor:online_softmax")
def masked_softmax(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=4, least=2)
    n, _, rows, columns = w.type_of(x).shape
    w.node("Softmax", w.node("Add", x, w.new("float32", (n, 1, rows, columns))), axis=-1)


@pattern("fast functions in a row", "relax:FastMathTransform")
def fast_functions(w: Weaver) -> None:
    x = w.node("Tanh", w.pick_or_new(FLOAT, rank=range(1, 5)))
    w.node(w.random.choice(["Erf", "Tanh"]), w.node("Exp", x))
