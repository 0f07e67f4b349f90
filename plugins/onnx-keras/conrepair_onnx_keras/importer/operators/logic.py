"""Bits, choices and casts, element by element, with broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from keras import ops

from conrepair_onnx_keras.importer.indexing import add
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.operators.arithmetic import of_bits
from conrepair_onnx_keras.importer.values import DTYPES, ImportedTensor, is_symbolic

_BITWISE = {"BitwiseAnd": ops.bitwise_and, "BitwiseOr": ops.bitwise_or, "BitwiseXor": ops.bitwise_xor}


@operator(*_BITWISE)
def bitwise(node: ImportedNode) -> Any:
    function = _BITWISE[node.operator]
    return node.elementwise(of_bits(node, lambda x, y: function(_widened(x, y), y)))


def _widened(x: Any, y: Any) -> Any:
    """The first operand in the shape of the result: for Keras that of bits has the first one's shape."""
    rank = len(x.shape)
    longer = len(y.shape) > rank or any(
        mine == 1 and other != 1 for mine, other in zip(x.shape[::-1], y.shape[::-1], strict=False)
    )
    return add(x, ops.zeros_like(y)) if longer else x


@operator()
def bitwise_not(node: ImportedNode) -> Any:
    return node.elementwise(of_bits(node, ops.bitwise_not))


@operator()
def bit_shift(node: ImportedNode) -> Any:
    """Shifts by no number of bits that the type has leave nothing but copies of the sign."""
    dtype = node.dtype(0)
    bits, left = 8 * np.dtype(dtype).itemsize, node.attribute("direction") == "LEFT"

    def shifted(x: Any, steps: Any) -> Any:
        if left:
            return ops.bitwise_left_shift(x, steps)
        if dtype != "uint64":
            return ops.bitwise_right_shift(x, steps)
        # Of uint64 as int64, where shifting to the right would draw a sign behind it.
        half = ops.bitwise_and(ops.bitwise_right_shift(x, ops.ones_like(x)), ops.full_like(x, 2**63 - 1))
        rest = ops.bitwise_right_shift(half, ops.maximum(ops.subtract(steps, 1), 0))
        return ops.where(ops.equal(steps, 0), x, rest)

    def function(x: Any, y: Any) -> Any:
        x = _widened(x, y)
        outside = ops.logical_or(ops.less(y, 0), ops.greater_equal(y, bits))
        if not left and not dtype.startswith("u"):
            return shifted(x, ops.where(outside, ops.full_like(y, bits - 1), y))
        found = shifted(x, ops.where(outside, ops.zeros_like(y), y))
        return ops.where(outside, ops.zeros_like(found), found)

    return node.elementwise(of_bits(node, function))


@operator()
def is_inf(node: ImportedNode) -> Any:
    positive, negative = node.attribute("detect_positive", 1), node.attribute("detect_negative", 1)

    def function(x: Any) -> Any:
        if positive and negative:
            return ops.isinf(x)
        if not positive and not negative:
            return ops.zeros_like(x, dtype="bool")
        return ops.isposinf(x) if positive else ops.isneginf(x)

    return node.elementwise(function)


@operator()
def where(node: ImportedNode) -> Any:
    def function(condition: Any, one: Any, two: Any) -> Any:
        if not all(isinstance(x, np.ndarray) and x.ndim == 0 for x in (one, two)):
            return ops.where(condition, one, two)
        # Arrays without axes lose their type in Keras's files.
        y = ops.where(condition, one.reshape(1), two.reshape(1))
        return y if len(condition.shape) else ops.reshape(y, ())

    return node.elementwise(of_bits(node, function))


@operator(refuses="text, 4-bit and 8-bit float types")
def cast(node: ImportedNode) -> Any:
    target = onnx.helper.tensor_dtype_to_np_dtype(node.attribute("to")).name
    return _cast(node, target)


@operator(refuses="text, 4-bit and 8-bit float types")
def cast_like(node: ImportedNode) -> Any:
    return _cast(node, node.dtype(1))


def _cast(node: ImportedNode, target: str) -> Any:
    source = node.dtype(0)
    if not {source, target} <= DTYPES:
        node.refuse(f"Keras doesn't compute with {target if source in DTYPES else source}")
    value = node.value(0)
    if isinstance(value, ImportedTensor) and source == target:
        return [value]
    if isinstance(value, np.ndarray) and not is_symbolic(value):
        return value.astype(target)
    if isinstance(value, np.ndarray):
        return node.output(ops.cast(node.tensor(0), target))
    return node.elementwise(lambda x: ops.cast(x, target), [0])
