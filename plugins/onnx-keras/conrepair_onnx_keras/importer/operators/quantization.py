"""Quantized values: how they are made and read, and products that are exact because they are sums of integers."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import onnx
from keras import ops

from conrepair_onnx_keras.importer.indexing import add, cast, computed
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.operators.convolution import convolved, convolved_with_tensor, layer_of
from conrepair_onnx_keras.importer.values import ImportedTensor, Value, known

_INTEGERS = {"int8", "uint8", "int16", "uint16"}
_REFUSES = "2-bit, 4-bit and 8-bit float types"


@operator(refuses=_REFUSES)
def quantize_linear(node: ImportedNode) -> Any:
    target = node.dtype(2) if node.has(2) else _named(node.attribute("output_dtype", 0)) or "uint8"
    if target not in _INTEGERS:
        node.refuse(f"Keras has no {target} to quantize to")
    value = node.computed(node.value(0))
    scale = _spread(node, node.value(1), value)
    dtype = _named(node.attribute("precision", 0)) or node.dtype(1)
    zero = _spread(node, node.value(2), value) if node.has(2) else None
    scaled = _quotient(ops.cast(value.stored, dtype), cast(scale, dtype))
    return node.output(_saturated(scaled, zero, target), value.order, value.shape)


@operator(refuses=_REFUSES)
def dequantize_linear(node: ImportedNode) -> Any:
    if node.dtype(0) not in {*_INTEGERS, "int32"}:
        node.refuse(f"Keras can't compute with {node.dtype(0)}")
    value = node.computed(node.value(0))
    target = _named(node.attribute("output_dtype", 0)) or node.dtype(1)
    x = ops.cast(value.stored, "int32")
    if node.has(2) and not (node.is_constant(2) and not np.any(node.constant(2))):
        x = ops.subtract(x, cast(_spread(node, node.value(2), value), "int32"))
    scale = cast(_spread(node, node.value(1), value), target)
    return node.output(ops.multiply(ops.cast(x, target), scale), value.order, value.shape)


@operator()
def dynamic_quantize_linear(node: ImportedNode) -> Any:
    """The range is the input's own, with 0 in it."""
    x = node.tensor(0)
    low, high = ops.minimum(ops.min(x), 0.0), ops.maximum(ops.max(x), 0.0)
    span = ops.subtract(high, low)
    scale = ops.where(ops.equal(span, 0), ops.ones_like(span), ops.divide(span, 255.0))
    zero = ops.cast(ops.round(ops.clip(ops.divide(ops.negative(low), scale), 0.0, 255.0)), "uint8")
    y = _saturated(ops.divide(x, scale), zero, "uint8")
    return [node.output(y, None, node.shape(0)), node.output(scale), node.output(zero)][: node.outputs]


@operator()
def matmul_integer(node: ImportedNode) -> Any:
    return ops.cast(_product(node, 0, 1, 2, 3), "int32")


@operator(refuses=_REFUSES)
def qlinear_matmul(node: ImportedNode) -> Any:
    return _requantized(node, _product(node, 0, 3, 2, 5), (1, 4, 6), 7)


@operator(ignores=("kernel_shape",))
def conv_integer(node: ImportedNode) -> Any:
    return node.from_channels_last(ops.cast(_convolution(node, 1, 2, 3), "int32"))


@operator(constant=("B",), ignores=("kernel_shape",), refuses=_REFUSES)
def qlinear_conv(node: ImportedNode) -> Any:
    total = _convolution(node, 3, 2, 5)
    if node.has(8):
        total = add(total, node.constant(8).astype(total.dtype))
    return node.from_channels_last(_requantized(node, total, (1, 4, 6), 7))


@operator("QLinearAdd", "QLinearMul", domain="com.microsoft")
def quantized_arithmetic(node: ImportedNode) -> Any:
    """a, its scale and zero point, b, its scale and zero point, scale and zero point of the result."""
    function = add if node.operator == "QLinearAdd" else ops.multiply
    return node.elementwise(lambda a, b: _remade(node, function(_real(node, a, 1), _real(node, b, 4)), 6), [0, 3])


@operator("QLinearGlobalAveragePool", domain="com.microsoft")
def quantized_global_average(node: ImportedNode) -> Any:
    rank = node.rank(0)
    last = bool(node.attribute("channels_last", 0))
    axes = tuple(range(1, rank - 1) if last else range(2, rank))
    return node.output(_remade(node, ops.mean(_real(node, node.tensor(0), 1), axis=axes, keepdims=True), 3))


@operator("QGemm", domain="com.microsoft")
def quantized_gemm(node: ImportedNode) -> Any:
    """A, scale, zero point, B, scale, zero point, C (of A's and B's scales), scale and zero point of the result."""
    if node.attribute("transA", 0) or not node.is_constant(3):
        node.refuse("only a constant B, and A as it is, are handled")
    b = node.constant(3)
    weights = b.T if node.attribute("transB", 0) else b
    dtype = _wide_enough(node, weights.shape[0], 0, 3)
    a_scale, b_scale = (node.constant(index).astype(np.float32) for index in (1, 4))
    centred = weights.astype(dtype) - node.constant(5, np.zeros((), b.dtype)).astype(dtype)
    x = ops.cast(node.tensor(0), dtype)
    x = ops.subtract(x, node.constant(2).astype(dtype).reshape(())) if node.has(2) else x
    total = node.layer(keras.layers.Dense, x, weights=[centred], units=centred.shape[1], use_bias=False)
    total = ops.round(total)
    total = add(total, node.constant(6).astype(dtype)) if node.has(6) else total
    factor = a_scale * b_scale * np.float32(node.attribute("alpha", 1.0))
    if not node.has(7):
        return ops.multiply(ops.cast(total, "float32"), factor)
    scaled = ops.multiply(ops.cast(total, "float32"), factor / node.constant(7).astype(np.float32))
    return _saturated(scaled, node.constant(8).reshape(-1)[0], node.dtype(8))


def _real(node: ImportedNode, x: Any, index: int) -> Any:
    """A quantized tensor as real numbers; its scale and zero point are single constants."""
    zero = int(node.constant(index + 1, np.zeros(1)).reshape(-1)[0])
    scale = np.float32(node.constant(index).reshape(()))
    return ops.multiply(ops.cast(ops.subtract(ops.cast(x, "int32"), zero), "float32"), float(scale))


def _remade(node: ImportedNode, x: Any, index: int) -> Any:
    scale = node.constant(index).astype(np.float32).reshape(())
    zero = node.constant(index + 1, np.zeros(1, np.uint8)).reshape(-1)[0]
    return _saturated(_quotient(x, scale), zero, str(zero.dtype))


# --- exact sums -----------------------------------------------------------------------------------------------


def _product(node: ImportedNode, left: int, right: int, left_zero: int, right_zero: int) -> Any:
    """A matrix product of integers, as floats that hold it exactly."""
    terms = node.known_shape(right)[-2 if node.rank(right) > 1 else -1]
    dtype = _wide_enough(node, terms, left, right)
    one = _centred(node, left, left_zero, dtype, rows=True)
    two = _centred(node, right, right_zero, dtype, rows=False)
    if isinstance(two, np.ndarray) and two.ndim == 2 and node.rank(left) > 1:
        product = node.layer(keras.layers.Dense, one, weights=[two], units=two.shape[1], use_bias=False)
    else:
        product = ops.matmul(one, two)
    return ops.round(product)


def _convolution(node: ImportedNode, weight: int, zero: int, weight_zero: int) -> Any:
    """A convolution of integers, channels last, as floats that hold it exactly."""
    shape = node.known_shape(weight)
    dtype = _wide_enough(node, math.prod(shape[1:]), 0, weight)
    weights = cast(node.tensor(weight), dtype)
    if node.has(weight_zero):
        offset = computed("reshape", cast(node.tensor(weight_zero), dtype), [-1, *[1] * (len(shape) - 1)])
        weights = computed("subtract", weights, offset)
    x = ops.cast(node.channels_last(0), dtype)
    if node.has(zero):
        x = ops.subtract(x, cast(node.tensor(zero), dtype))

    def apply(x: Any, settings: dict[str, Any]) -> Any:
        if isinstance(weights, np.ndarray):
            return layer_of(node, x, weights, [], settings)
        return convolved_with_tensor(node, x, weights, settings)

    return ops.round(convolved(node, x, shape, apply))


def _centred(node: ImportedNode, index: int, zero: int, dtype: str, *, rows: bool) -> Any:
    """A matrix less its zero point, which may be given for each row or column."""
    x = cast(node.tensor(index), dtype)
    if not node.has(zero):
        return x
    offset = cast(node.tensor(zero), dtype)
    if rows and len(offset.shape) == 1 and offset.shape[0] != 1:
        offset = computed("expand_dims", offset, 1)
    return computed("subtract", x, offset)


def _wide_enough(node: ImportedNode, terms: int, *indices: int) -> str:
    """A float type in which sums of so many products are exact."""
    if any(node.dtype(index) not in {"int8", "uint8"} for index in indices):
        node.refuse("only 8-bit integers are multiplied")
    return "float32" if terms * 255 * 255 < 2**24 else "float64"


def _quotient(x: Any, scale: Any) -> Any:
    """The quotient, rounded once.

    TensorFlow multiplies by the reciprocal of a divisor that is constant, which rounds twice and moves halves to the
    wrong side. So the divisor depends on x: beyond all ranges, where it doesn't matter, it's a little larger.
    """
    if not isinstance(scale, np.ndarray | np.generic):
        return ops.divide(x, scale)
    far = 1e30 if str(x.dtype) in {"float32", "float64", "bfloat16"} else 65000.0
    return ops.divide(x, ops.where(ops.less(x, far), scale, np.nextafter(scale, np.inf).astype(scale.dtype)))


def _requantized(node: ImportedNode, total: Any, scales: tuple[int, int, int], zero: int) -> Any:
    """Sums as quantized values, as ONNX Runtime computes them: one factor in float32."""
    one, two, three = (cast(node.tensor(index), "float32") for index in scales)
    constant = all(node.is_constant(index) for index in scales)
    factor = one * two / three if constant else ops.divide(ops.multiply(one, two), three)
    target = node.dtype(zero)
    if target not in _INTEGERS:
        node.refuse(f"Keras has no {target} to quantize to")
    scaled = ops.multiply(ops.cast(total, "float32"), factor if math.prod(factor.shape) > 1 else _single(factor))
    moved = node.constant(zero).reshape(-1)[0] if node.is_constant(zero) else _single(node.tensor(zero))
    return _saturated(scaled, moved, target)


def _saturated(scaled: Any, zero: Any, target: str) -> Any:
    """Rounded half to even, moved to the zero point, and cut to the range of a type."""
    limits = np.iinfo(target)
    whole = ops.round(scaled)
    if zero is not None and not (isinstance(zero, np.ndarray | np.generic) and not np.any(zero)):
        whole = add(whole, cast(zero, scaled.dtype))
    return ops.cast(ops.clip(whole, float(limits.min), float(limits.max)), target)


# --- scales and zero points -----------------------------------------------------------------------------------


def _named(code: int) -> str | None:
    return onnx.helper.tensor_dtype_to_np_dtype(code).name if code else None


def _spread(node: ImportedNode, parameter: Value, value: ImportedTensor) -> Any:
    """A scale or zero point so that it broadcasts against a tensor as it is stored."""
    rank, axis = value.rank, int(node.attribute("axis", 1)) % max(value.rank, 1)
    size = math.prod(int(length) if known(length) else 2 for length in parameter.shape)
    if size == 1:
        return _single(node.stored(parameter))
    if len(parameter.shape) == 1:
        shape = [-1 if place == axis else 1 for place in range(rank)]
        spread = computed("reshape", node.stored(parameter), shape)
    else:
        length, block = value.shape[axis], node.attribute("block_size", 0)
        if not block:
            node.refuse(f"a scale of {len(parameter.shape)} axes needs block_size")
        if not known(length):
            node.refuse(f"the size of axis {axis} must be known; fix it with --input")
        index = tuple(slice(0, int(length)) if place == axis else slice(None) for place in range(rank))
        spread = computed("repeat", node.stored(parameter), block, axis)[index]
    return node.stored(spread if isinstance(spread, np.ndarray) else node.output(spread), value.order)


def _single(x: Any) -> Any:
    return computed("reshape", x, ())
