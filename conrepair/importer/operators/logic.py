"""Comparisons, logic and bits, element by element, with broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from keras import ops

from conrepair.importer.node import Node
from conrepair.importer.registry import operator
from conrepair.importer.values import DTYPES, Tensor, is_symbolic

_BINARY = {
    "And": ops.logical_and,
    "BitwiseAnd": ops.bitwise_and,
    "BitwiseOr": ops.bitwise_or,
    "BitwiseXor": ops.bitwise_xor,
    "Equal": ops.equal,
    "Greater": ops.greater,
    "GreaterOrEqual": ops.greater_equal,
    "Less": ops.less,
    "LessOrEqual": ops.less_equal,
    "Or": ops.logical_or,
    "Xor": ops.logical_xor,
}


@operator(*_BINARY)
def binary(node: Node) -> Any:
    return node.elementwise(_BINARY[node.operator])


@operator("Not")
def negation(node: Node) -> Any:
    return node.elementwise(ops.logical_not)


@operator("BitwiseNot")
def bitwise_negation(node: Node) -> Any:
    return node.elementwise(ops.bitwise_not)


@operator("BitShift")
def shift(node: Node) -> Any:
    """Shifts by no number of bits that the type has leave nothing but copies of the sign."""
    dtype = node.dtype(0)
    bits, left = 8 * np.dtype(dtype).itemsize, node.attribute("direction") == "LEFT"

    def function(x: Any, y: Any) -> Any:
        outside = ops.logical_or(ops.less(y, 0), ops.greater_equal(y, bits))
        if left:
            shifted = ops.bitwise_left_shift(x, ops.where(outside, ops.zeros_like(y), y))
            return ops.where(outside, ops.zeros_like(shifted), shifted)
        return ops.bitwise_right_shift(x, ops.where(outside, ops.full_like(y, bits - 1), y))

    def unsigned(x: Any, y: Any) -> Any:
        outside = ops.greater_equal(y, bits)
        shifted = (ops.bitwise_left_shift if left else ops.bitwise_right_shift)(x, ops.minimum(y, bits - 1))
        return ops.where(outside, ops.zeros_like(shifted), shifted)

    return node.elementwise(unsigned if dtype.startswith("u") else function)


@operator("IsNaN")
def is_nan(node: Node) -> Any:
    return node.elementwise(ops.isnan)


@operator("IsInf")
def is_inf(node: Node) -> Any:
    positive, negative = node.attribute("detect_positive", 1), node.attribute("detect_negative", 1)

    def function(x: Any) -> Any:
        if positive and negative:
            return ops.isinf(x)
        if not positive and not negative:
            return ops.zeros_like(x, dtype="bool")
        return ops.isposinf(x) if positive else ops.isneginf(x)

    return node.elementwise(function)


@operator("Where")
def where(node: Node) -> Any:
    def function(condition: Any, one: Any, two: Any) -> Any:
        if not all(isinstance(x, np.ndarray) and x.ndim == 0 for x in (one, two)):
            return ops.where(condition, one, two)
        # Arrays without axes lose their type in Keras's files.
        y = ops.where(condition, one.reshape(1), two.reshape(1))
        return y if len(condition.shape) else ops.reshape(y, ())

    return node.elementwise(function)


@operator("Cast", refuses="text, 4-bit and 8-bit float types")
def cast(node: Node) -> Any:
    target = onnx.helper.tensor_dtype_to_np_dtype(node.attribute("to")).name
    return _cast(node, target)


@operator("CastLike", refuses="text, 4-bit and 8-bit float types")
def cast_like(node: Node) -> Any:
    return _cast(node, node.dtype(1))


def _cast(node: Node, target: str) -> Any:
    source = node.dtype(0)
    if not {source, target} <= DTYPES:
        node.refuse(f"Keras doesn't compute with {target if source in DTYPES else source}")
    value = node.value(0)
    if isinstance(value, Tensor) and source == target:
        return [value]
    if isinstance(value, np.ndarray) and not is_symbolic(value):
        return value.astype(target)
    if isinstance(value, np.ndarray):
        return node.output(ops.cast(node.tensor(0), target))
    return node.elementwise(lambda x: ops.cast(x, target), [0])
