"""Arithmetic with sizes that are known by name: what exporters write between Shape and Reshape."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from conrepair.formats.onnx.passes.sizes import ARITHMETIC, MOVING, NotKnownError, each, reduced
from conrepair_onnx_keras.importer.values import Array, known

if TYPE_CHECKING:
    from conrepair_onnx_keras.importer.node import ImportedNode


def evaluate_sizes(node: ImportedNode) -> list[Array] | None:
    """The outputs of a node of sizes; None when there's no arithmetic for its operator here."""
    function = _FUNCTIONS.get(node.operator)
    if function is None or node.ir.domain not in {"", "ai.onnx"}:
        return None
    operands = [np.asarray(node.value(index)) if node.has(index) else None for index in range(len(node.inputs))]
    attributes = {name: node.attribute(name) for name in node.ir.attributes}
    try:
        result = _split(node) if function is _split else function(*operands, **attributes)
    except NotKnownError:
        return None
    results = [settled(np.asarray(item)) for item in (result if isinstance(result, list) else [result])]
    return [_typed(node, item, index) for index, item in enumerate(results)]


def _typed(node: ImportedNode, sizes: Array, index: int) -> Array:
    """Once they are known, sizes have the type of the node's output: further nodes look at it."""
    declared = node.ir.outputs[index].dtype if index < len(node.ir.outputs) else None
    return sizes if sizes.dtype != np.int64 or declared is None else sizes.astype(declared.numpy())


def settled(sizes: Array) -> Array:
    """An array of sizes as ordinary integers (or booleans), when all are known."""
    if sizes.dtype != object:
        return sizes
    items = sizes.reshape(-1).tolist()
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        return sizes.astype(bool)
    return sizes.astype(np.int64) if all(map(known, items)) else sizes


def _compare(relation: Any) -> Callable[[Any, Any], bool]:
    def compare(one: Any, two: Any) -> bool:
        answer = relation(sympy.sympify(one), sympy.sympify(two))
        if answer not in (sympy.true, sympy.false):
            raise NotKnownError
        return bool(answer)

    return compare


def _divide(one: Any, two: Any) -> Any:
    """Division truncates towards zero; of sizes whose sign isn't known it's left to the run."""
    quotient = sympy.sympify(one) / sympy.sympify(two)
    if quotient.is_integer:
        return quotient
    if quotient.is_nonnegative:
        return sympy.floor(quotient)
    if not quotient.is_nonpositive:
        raise NotKnownError
    return -sympy.floor(-quotient)


def _modulo(one: Array, two: Array, fmod: int = 0) -> Array:
    """The sign is the divisor's; what fmod asks for, the dividend's, is left to the run."""
    if fmod:
        raise NotKnownError
    return each(sympy.Mod)(one, two)


def _split(node: ImportedNode) -> list[Array]:
    data, axis = np.asarray(node.value(0)), node.axis(0)
    return list(np.split(data, np.cumsum(split_lengths(node, data.shape[axis]))[:-1], axis))


def split_lengths(node: ImportedNode, size: int) -> list[int]:
    """Lengths of the parts that a Split makes of an axis: the last ones may be shorter."""
    lengths = node.constant_or_attribute("split", 1)
    if lengths is not None:
        return [int(length) for length in lengths]
    count = node.attribute("num_outputs", len(node.ir.outputs))
    each = -(-size // count)
    return [max(min(each, size - each * index), 0) for index in range(count)]


_NUMBERS: dict[str, Callable[..., Any]] = {
    **ARITHMETIC,
    "Div": _divide,
    "Equal": _compare(sympy.Eq),
    "Greater": _compare(sympy.Gt),
    "GreaterOrEqual": _compare(sympy.Ge),
    "Less": _compare(sympy.Lt),
    "LessOrEqual": _compare(sympy.Le),
    "Max": sympy.Max,
    "Min": sympy.Min,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **MOVING,
    **{name: each(function) for name, function in _NUMBERS.items()},
    "Mod": _modulo,
    "ReduceProd": reduced(operator.mul),
    "ReduceSum": reduced(operator.add),
    "Split": _split,
}
