"""Arithmetic, comparisons and functions of numbers, element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import onnx
from keras import ops

from conrepair.ground.operators.all_operators import OPERATORS
from conrepair_onnx_keras.importer.indexing import add, cast
from conrepair_onnx_keras.importer.node import ImportedNode, operator


def _of_keras(operands: int, *others: str) -> dict[str, Callable[..., Any]]:
    """ONNX's functions of so many numbers that keras.ops has by the same name as NumPy, but for some others."""
    known = {
        name: getattr(ops, record.value.__name__, None)
        for name, record in OPERATORS.items()
        if record.operands == operands and {"constant_first"}.issuperset(record.attributes) and callable(record.value)
    }
    return {
        name: function
        for name, function in known.items()
        if function is not None and onnx.defs.has(name) and name not in others
    }


_UNARY = {
    **_of_keras(1),
    "IsNaN": ops.isnan,
    "Reciprocal": lambda x: ops.divide(1, x),  # ops.reciprocal makes float32 of everything
    "Round": ops.round,
}
_OF_SEVERAL = {**_of_keras(2, "Div", "Pow"), "Add": add, "Sum": add, "Mean": add}
_COMPARISONS = {name for name, record in OPERATORS.items() if record.family == "comparison"}


@operator(*_UNARY)
def unary(node: ImportedNode) -> Any:
    if node.operator == "Sign" and node.dtype(0).startswith("uint"):  # which TensorFlow has no signs of
        return node.elementwise(lambda x: ops.cast(ops.cast(x, "bool"), node.dtype(0)))
    return node.elementwise(_UNARY[node.operator])


@operator(*_OF_SEVERAL)
def of_several(node: ImportedNode) -> Any:
    function, compares = _OF_SEVERAL[node.operator], node.operator in _COMPARISONS

    def combine(*tensors: Any) -> Any:
        total = reduce(function, tensors)
        return ops.divide(total, len(tensors)) if node.operator == "Mean" and len(tensors) > 1 else total

    if compares or node.operator in {"Max", "Min"}:
        return node.elementwise(of_order(node, combine, compares=compares))
    return node.elementwise(of_bits(node, combine))


@operator("Identity", "Dropout", ignores=("consumed_inputs", "is_test", "ratio", "seed"))
def identity(node: ImportedNode) -> Any:
    """Dropout does nothing when a model is used; its mask says so since opset 12, and was empty before."""
    if node.operator == "Dropout" and node.has(2) and np.any(node.constant(2)) and node.constant(1, 0.5) != 0:
        node.refuse("training_mode is on, so its output is random")
    value = node.value(0)
    if node.outputs == 1:
        return [value]
    mask = ops.ones_like if node.opset >= 12 else ops.zeros_like
    return [value, node.elementwise(lambda x: mask(x, dtype="bool"), [0])]


@operator()
def div(node: ImportedNode) -> Any:
    """Integers are divided with truncation towards zero."""
    dtype = node.dtype(0)
    if "float" in dtype:
        return node.elementwise(ops.divide)
    if dtype.startswith("uint"):
        return node.elementwise(ops.floor_divide)

    return node.elementwise(truncated_quotient)


def truncated_quotient(x: Any, y: Any) -> Any:
    """The quotient of integers, rounded towards zero; the lowest number has no absolute value, so none is taken."""
    quotient = ops.floor_divide(x, y)
    inexact = ops.not_equal(ops.multiply(quotient, y), x)
    opposite = ops.not_equal(ops.less(x, 0), ops.less(y, 0))
    return add(quotient, ops.cast(ops.logical_and(inexact, opposite), quotient.dtype))


@operator()
def mod(node: ImportedNode) -> Any:
    """With fmod the result has the dividend's sign, else the divisor's."""
    if not node.attribute("fmod", 0):
        return node.elementwise(ops.mod)

    if "float" not in node.dtype(0):
        return node.elementwise(lambda x, y: ops.subtract(x, ops.multiply(truncated_quotient(x, y), y)))

    def remainder(x: Any, y: Any) -> Any:
        return ops.multiply(ops.sign(x), ops.mod(ops.absolute(x), ops.absolute(y)))

    return node.elementwise(remainder)


@operator("Pow")
def power(node: ImportedNode) -> Any:
    """The result has the base's type; small integer powers are exact."""
    dtype = node.dtype(0)

    def function(x: Any, y: Any) -> Any:
        number = y.item() if isinstance(y, np.ndarray) and y.size == 1 and y.ndim <= len(x.shape) else None
        if number == 2:
            return ops.square(x)
        if number == 0.5 and "float" in dtype:
            return ops.sqrt(x)
        mixed = str(getattr(y, "dtype", dtype)) != dtype
        if not mixed:
            return ops.power(x, y) if "float" in dtype or dtype.startswith("uint") else _whole_power(x, y)
        wide = "float64" if "64" in dtype or "int" in dtype else dtype
        return ops.cast(ops.power(cast(x, wide), cast(y, wide)), dtype)

    return node.elementwise(function)


def _whole_power(x: Any, y: Any) -> Any:
    """Of integers, whose negative powers TensorFlow stops at: they are 1, -1 or, cut to integers, 0."""
    if isinstance(y, np.ndarray) and np.all(y >= 0):
        return ops.power(x, y)
    odd = ops.equal(ops.mod(y, 2), 1)
    sign = ops.where(ops.equal(x, 1), ops.ones_like(x), ops.zeros_like(x))
    alternating = ops.where(odd, ops.full_like(x, -1), ops.ones_like(x))
    sign = ops.where(ops.equal(x, -1), alternating, sign)
    return ops.where(ops.less(y, 0), sign, ops.power(x, ops.maximum(y, ops.zeros_like(y))))


@operator("CumSum", "CumProd", constant=("axis",))
def cumulative(node: ImportedNode) -> Any:
    function, start = (ops.cumsum, 0) if node.operator == "CumSum" else (ops.cumprod, 1)
    x, axis = node.tensor(0), int(np.asarray(node.constant(1)).item())
    axis += node.rank(0) if axis < 0 else 0
    if node.attribute("reverse", 0):
        x = ops.flip(x, axis=axis)
    if node.attribute("exclusive", 0):
        padding = [(1, 0) if place == axis else (0, 0) for place in range(node.rank(0))]
        index = tuple(slice(None, -1) if place == axis else slice(None) for place in range(node.rank(0)))
        x = ops.pad(x[index], padding, constant_values=start)
    result = function(x, axis=axis)
    result = ops.flip(result, axis=axis) if node.attribute("reverse", 0) else result
    return node.output(result, None, node.shape(0))


# uint64, which Keras computes in uint32 without a word: computed in int64, on the same bits.

_LOWEST = -(2**63)


def of_bits(node: ImportedNode, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of bits, or of sums and products, which wrap around alike; what it gives is of the node's type.

    Args:
        node: Whose last input says the type.
        function: Of tensors of that type.
    """
    if not _concerned(node):
        return function
    return lambda *tensors: ops.view(function(*map(_signed, tensors)), "uint64")


def of_order(node: ImportedNode, function: Callable[..., Any], *, compares: bool) -> Callable[..., Any]:
    """A function that asks which number is larger; see `of_bits`.

    Args:
        node: The node.
        function: Of its tensors.
        compares: Whether it gives truths, and not one of the numbers.
    """
    if not _concerned(node):
        return function

    def ordered(*tensors: Any) -> Any:
        y = function(*(add(_signed(x), _LOWEST) for x in tensors))
        return y if compares else ops.view(add(y, _LOWEST), "uint64")

    return ordered


def _concerned(node: ImportedNode) -> bool:
    return node.dtype(len(node.inputs) - 1) == "uint64"


def _signed(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.view("int64") if x.dtype == "uint64" else x
    return ops.view(x, "int64") if str(x.dtype) == "uint64" else x
