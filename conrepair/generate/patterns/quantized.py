"""Quantized networks: operators between conversions to eight bits and back, and integer products."""

from __future__ import annotations

from conrepair.generate.patterns.parts import (
    FLOAT,
    cast,
    dequantized,
    image,
    made,
    quantized,
    read,
    requantized,
    scalar,
    width,
)
from conrepair.generate.patterns.pattern import of_real, of_rows, pattern, reading
from conrepair.generate.tensors import Range
from conrepair.generate.weaving import Weaver

_SELECTED = "onnxruntime:QDQSelectorActionTransformer"


_of_image = reading(lambda w: requantized(w, image(w)))


def _weight(w: Weaver, *shape: int) -> str:
    return dequantized(w, w.weight(*shape, dtype="int8", low=-20, high=20), 0.02)


def _bias(w: Weaver, count: int, scale: float) -> str:
    return dequantized(w, w.weight(count, dtype="int32", low=-100, high=100), scale)


@_of_image("quantized conv", _SELECTED, "onnxruntime:NhwcTransformer", "inductor:quantization", "tflite:QuantizeConv")
def quantized_conv(w: Weaver, x: str) -> None:
    weight = _weight(w, 4, w.type_of(x).shape[1], 3, 3)
    product = w.node("Conv", x, weight, _bias(w, 4, 0.05 * 0.02), pads=(1, 1, 1, 1))
    requantized(w, w.node("Relu", product) if w.random.random() < 0.5 else product)


@_of_image("quantized conv with a float bias", "onnxruntime:WeightBiasQuantization", _SELECTED)
def float_bias(w: Weaver, x: str) -> None:
    weight = _weight(w, 4, w.type_of(x).shape[1], 1, 1)
    requantized(w, w.node("Conv", x, weight, w.weight(4)))


@pattern("signed quantized product", "onnxruntime:QDQS8ToU8Transformer", _SELECTED, "tflite:QuantizeFullyConnected")
def signed_product(w: Weaver) -> None:
    x = requantized(w, w.pick_or_new(FLOAT, rank=2, least=2), "int8")
    requantized(w, w.node("MatMul", x, _weight(w, width(w, x), 4)), "int8")


@pattern("quantized gemm", _SELECTED, "tflite:QuantizeFullyConnected")
def quantized_gemm(w: Weaver) -> None:
    x = requantized(w, w.pick_or_new(FLOAT, rank=2, least=2))
    requantized(w, w.node("Gemm", x, _weight(w, 4, width(w, x)), _bias(w, 4, 0.05 * 0.02), transB=1))


@pattern("quantized product, float result", _SELECTED)
def half_quantized(w: Weaver) -> None:
    x = requantized(w, w.pick_or_new(FLOAT, rank=(2, 3), least=2))
    w.node("MatMul", x, _weight(w, width(w, x), 4))


@of_real("quantized sum", _SELECTED, "tflite:QuantizeAdd", "inductor:quantization")
def quantized_sum(w: Weaver, x: str) -> None:
    other = w.new("float32", w.type_of(x).shape)
    requantized(w, w.node(w.random.choice(["Add", "Mul"]), requantized(w, x), requantized(w, other)))


@_of_image("quantized pool", _SELECTED, "tflite:QuantizePool")
def quantized_pool(w: Weaver, x: str) -> None:
    op = w.random.choice(["MaxPool", "AveragePool", "GlobalAveragePool"])
    requantized(w, w.node(op, x) if op.startswith("Global") else w.node(op, x, kernel_shape=(2, 2)))


@pattern("quantized activation", _SELECTED, "tflite:QuantizeActivation")
def quantized_activation(w: Weaver) -> None:
    x = requantized(w, w.pick_or_new(FLOAT, rank=range(1, 5)))
    op = w.random.choice(["Sigmoid", "LeakyRelu", "Softmax"])
    requantized(w, w.node(op, x))


@of_real("quantized concat", _SELECTED, "tflite:PropagateQuantization")
def quantized_concat(w: Weaver, x: str) -> None:
    other = w.new("float32", w.type_of(x).shape)
    requantized(w, w.node("Concat", requantized(w, x), requantized(w, other), axis=0))


@pattern("clip before quantizing", "onnxruntime:ClipQuantRewrite", "tflite:PropagateQuantization")
def clip_quantized(w: Weaver) -> None:
    read(w, dequantized(w, quantized(w, w.node("Clip", made(w), min=-20.0, max=20.0))))


@pattern("relu before quantizing", "onnxruntime:ReluQuantRewrite", "tflite:PropagateQuantization")
def relu_quantized(w: Weaver) -> None:
    dequantized(w, quantized(w, w.node("Relu", made(w)), zero=0), zero=0)


@of_real("quantized twice", "onnxruntime:DoubleQDQPairsRemover", "onnxruntime:QDQFinalCleanupTransformer")
def twice(w: Weaver, x: str) -> None:
    w.node("Relu", requantized(w, requantized(w, x)))


@pattern("back and forth", "onnxruntime:QDQFinalCleanupTransformer", "tflite:RemoveDequantizeQuantize")
def back_and_forth(w: Weaver) -> None:
    x = w.new("uint8", (2, 3))
    quantized(w, dequantized(w, x))


@_of_image("moved between quantizing", "onnxruntime:QDQPropagationTransformer", "onnxruntime:TransposeOptimizer")
def moved(w: Weaver, x: str) -> None:
    turned = w.node("Transpose", x, perm=(0, 2, 3, 1))
    flat = w.node("Reshape", turned, shape=[0, -1])
    w.node("Relu", flat) if w.random.random() < 0.5 else quantized(w, flat)


@pattern("one dequantized tensor for two", _SELECTED)
def shared(w: Weaver) -> None:
    x = requantized(w, w.pick_or_new(FLOAT, rank=range(2, 5), least=2))
    requantized(w, w.node("Mul", x, x))
    requantized(w, w.node("Sigmoid", x))


@of_real("where between quantizing", "onnxruntime:WhereDummyDq", _SELECTED)
def quantized_where(w: Weaver, x: str) -> None:
    chosen = w.node("Greater", x, scalar(w, 0.0))
    requantized(w, w.node("Where", chosen, requantized(w, x), scalar(w, 0.5)))


def _integer_product(w: Weaver, x: str, scale: str, zero: str) -> str:
    """A product of integers as a float."""
    product = w.node("MatMulInteger", x, w.weight(width(w, x), 4, dtype="int8", low=-20, high=20), zero)
    return w.node("Mul", cast(w, product, "float32"), w.node("Mul", scale, scalar(w, 0.02)))


@of_rows("product quantized as it runs", "onnxruntime:DynamicQuantizeMatMulFusion", "inductor:quantization")
def dynamic(w: Weaver, x: str) -> None:
    product = _integer_product(w, *w.nodes("DynamicQuantizeLinear", x, outputs=3))
    if w.random.random() < 0.5:
        w.node("Add", product, w.weight(4))


@pattern("integer product", "onnxruntime:MatMulIntegerToFloatFusion")
def integer_product(w: Weaver) -> None:
    x = w.new("uint8", (3, 4))
    product = _integer_product(w, x, w.new("float32", (), Range(0.01, 0.1)), w.constant(3, "uint8"))
    if w.random.random() < 0.5:
        w.node("Add", product, w.weight(4))
