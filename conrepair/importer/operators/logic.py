"""Comparisons, logic and bits, element by element, with broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from keras import ops

from conrepair.importer.node import Node
from conrepair.importer.registry import operator
from conrepair.importer.values import Tensor, is_symbolic

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
_NUMERIC = {
    "bool", "float16", "bfloat16", "float32", "float64",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
}  # fmt: skip


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
    function = ops.bitwise_left_shift if node.attribute("direction") == "LEFT" else ops.bitwise_right_shift
    return node.elementwise(function)


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
    return node.elementwise(ops.where)


@operator("Cast", refuses="text, 4-bit and 8-bit float types")
def cast(node: Node) -> Any:
    target = onnx.helper.tensor_dtype_to_np_dtype(node.attribute("to")).name
    return _cast(node, target)


@operator("CastLike", refuses="text, 4-bit and 8-bit float types")
def cast_like(node: Node) -> Any:
    return _cast(node, node.dtype(1))


def _cast(node: Node, target: str) -> Any:
    source = node.dtype(0)
    if not {source, target} <= _NUMERIC:
        node.refuse(f"Keras doesn't compute with {target if source in _NUMERIC else source}")
    value = node.value(0)
    if isinstance(value, Tensor) and source == target:
        return [value]
    if isinstance(value, np.ndarray):
        if is_symbolic(value):
            return node.output(ops.cast(node.tensor(0), target))
        return value.astype(target)
    return node.elementwise(lambda x: ops.cast(x, target), [0])
