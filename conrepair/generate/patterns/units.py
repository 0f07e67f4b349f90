"""What usual networks are made of."""

from __future__ import annotations

from conrepair.generate.patterns.convolutions import batch_norm
from conrepair.generate.patterns.parts import FLOAT, conv, linear, width
from conrepair.generate.patterns.pattern import of_image, of_matrix, of_tokens, pattern
from conrepair.generate.weaving import Weaver


@pattern("gated linear unit", "relax:CombineParallelMatmul", "xla:dot-merger")
def gated(w: Weaver) -> None:
    x = w.pick_or_new(FLOAT, rank=(2, 3))
    inner = w.random.choice([2, 4, 8])
    gate, value = (w.node("MatMul", x, w.new("float32", (width(w, x), inner))) for _ in range(2))
    both = w.node("Mul", w.node("Mul", gate, w.node("Sigmoid", gate)), value)
    w.node("MatMul", both, w.new("float32", (inner, width(w, x))))


@of_tokens("gate by a split", "inductor:split_cat")
def split_gate(w: Weaver, x: str) -> None:
    value, gate = w.nodes("Split", linear(w, x, 8), outputs=2, axis=-1, split=[4, 4])
    w.node("Mul", value, w.node("Sigmoid", gate))


@of_image("residual block", "onnxruntime:ConvAddActivationFusion")
def residual(w: Weaver, x: str) -> None:
    channels = w.type_of(x).shape[1]
    weight = w.weight(channels, channels, 3, 3)
    inner = w.node("Relu", w.node("Conv", x, weight, pads=(1, 1, 1, 1)))
    w.node("Relu", w.node("Add", w.node("Conv", inner, weight, pads=(1, 1, 1, 1)), x))


@of_image("residual block with batch norms", "onnxruntime:ConvBNFusion", "relax:FoldBatchnormToConv2D")
def normal_residual(w: Weaver, x: str) -> None:
    channels = w.type_of(x).shape[1]
    inner = w.node("Relu", batch_norm(w, conv(w, x, 4, bias=False)))
    w.node("Relu", w.node("Add", batch_norm(w, conv(w, inner, channels, bias=False)), x))


@of_image("squeeze and excitation", "tflite:HardSwish", "onnxruntime:ConvActivationFusion")
def squeeze_excitation(w: Weaver, x: str) -> None:
    mean = w.node("GlobalAveragePool", x)
    inner = w.node("Relu", conv(w, mean, 2, 1))
    w.node("Mul", x, w.node(w.random.choice(["Sigmoid", "HardSigmoid"]), conv(w, inner, w.type_of(x).shape[1], 1)))


@of_image("inverted residual", "onnxruntime:ConvActivationFusion", "onnxruntime:NchwcTransformer")
def inverted_residual(w: Weaver, x: str) -> None:
    wide = w.node("Clip", conv(w, x, 8, 1), min=0.0, max=6.0)
    deep = w.node("Clip", conv(w, wide, 8, group=8), min=0.0, max=6.0)
    w.node("Add", conv(w, deep, w.type_of(x).shape[1], 1), x)


@of_image("upsampled and joined", "onnxruntime:NchwcTransformer", "tflite:ResizeNearest")
def upsampled(w: Weaver, x: str) -> None:
    small = w.node("MaxPool", conv(w, x, 8), kernel_shape=(2, 2), strides=(2, 2), ceil_mode=1)
    n, _, high, wide = w.type_of(small).shape
    large = w.node("Resize", small, scales=[1.0, 1.0, 2.0, 2.0], mode=w.random.choice(["nearest", "linear"]))
    other = w.new("float32", (n, 4, 2 * high, 2 * wide))
    conv(w, w.node("Concat", large, other, axis=1), 4)


@of_image("classifier's head", "tflite:FuseFullyConnectedAndAdd", "xla:algsimp")
def head(w: Weaver, x: str) -> None:
    flat = w.node("Flatten", w.node("GlobalAveragePool", x), axis=1)
    made = w.node("Gemm", flat, w.weight(5, width(w, flat)), w.weight(5), transB=1)
    w.node("Softmax", made, axis=-1)


@of_matrix("recurrent cell written out", "tflite:UnidirectionalLSTM", "inductor:split_cat")
def cell(w: Weaver, x: str) -> None:
    rows = w.type_of(x).shape[0]
    state, memory = w.new("float32", (rows, 3)), w.new("float32", (rows, 3))
    gates = w.node("Add", linear(w, x, 12), linear(w, state, 12, bias=False))
    i, f, g, o = w.nodes("Split", gates, outputs=4, axis=1, split=[3] * 4)
    w.write("Sigmoid(o) * Tanh(Sigmoid(f) * memory + Sigmoid(i) * Tanh(g))", i=i, f=f, g=g, o=o, memory=memory)


@of_matrix("gated recurrent cell", "tflite:UnidirectionalGRU", "inductor:pointwise")
def gated_cell(w: Weaver, x: str) -> None:
    state = w.new("float32", (w.type_of(x).shape[0], 4))
    gate = w.node("Sigmoid", w.node("Add", linear(w, x, 4), linear(w, state, 4, bias=False)))
    new = w.node("Tanh", linear(w, x, 4))
    w.write("gate * state + (1 - gate) * new", gate=gate, state=state, new=new)


@of_image("pyramid of pools", "inductor:pointwise_cat")
def pyramid(w: Weaver, x: str) -> None:
    parts = [x]
    for _ in range(2):
        parts.append(w.node("MaxPool", parts[-1], kernel_shape=(3, 3), pads=(1, 1, 1, 1)))
    w.node("Concat", *parts, axis=1)
