"""Arithmetic with sizes that are known by name: what exporters write between Shape and Reshape.

Each function computes one operator on arrays of dtype object, as numpy does on numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from conrepair.importer.values import Array, known

if TYPE_CHECKING:
    from conrepair.importer.node import Node

__all__ = ["evaluate_sizes", "settled"]


def evaluate_sizes(node: Node) -> list[Array] | None:
    """The outputs of a node of sizes; None when there's no arithmetic for its operator here."""
    function = _FUNCTIONS.get(node.operator)
    if function is None or node.ir.domain not in {"", "ai.onnx"}:
        return None
    result = function(node)
    if result is None:
        return None
    return [settled(np.asarray(item)) for item in (result if isinstance(result, list) else [result])]


def settled(sizes: Array) -> Array:
    """An array of sizes as ordinary integers (or booleans), when all are known."""
    if sizes.dtype != object:
        return sizes
    items = sizes.reshape(-1).tolist()
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        return sizes.astype(bool)
    return sizes.astype(np.int64) if all(map(known, items)) else sizes


def _array(node: Node, index: int) -> Array:
    return np.asarray(node.value(index))


def _axes(node: Node, index: int) -> list[int] | None:
    axes = node.constant_or_attribute("axes", index)
    return None if axes is None else [int(axis) for axis in np.atleast_1d(axes)]


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Node], Any]:
    def evaluate(node: Node) -> Any:
        one, two = np.broadcast_arrays(_array(node, 0), _array(node, 1))
        items = [function(*pair) for pair in zip(one.reshape(-1).tolist(), two.reshape(-1).tolist(), strict=True)]
        if any(item is None for item in items):
            return None
        result = np.empty(len(items), object)
        result[:] = items
        return result.reshape(one.shape)

    return evaluate


def _compare(relation: Any) -> Callable[[Any, Any], bool | None]:
    def compare(one: Any, two: Any) -> bool | None:
        answer = relation(sympy.sympify(one), sympy.sympify(two))
        return bool(answer) if answer in (sympy.true, sympy.false) else None

    return compare


def _divide(one: Any, two: Any) -> Any:
    quotient = sympy.sympify(one) / sympy.sympify(two)
    return quotient if quotient.is_integer else sympy.floor(quotient)


def _gather(node: Node) -> Any:
    return np.take(_array(node, 0), node.constant(1), axis=node.axis(0))


def _slice(node: Node) -> Any:
    data = _array(node, 0)
    starts = np.atleast_1d(node.constant_or_attribute("starts", 1))
    ends = np.atleast_1d(node.constant_or_attribute("ends", 2))
    axes = np.atleast_1d(node.constant_or_attribute("axes", 3, list(range(len(starts)))))
    steps = np.atleast_1d(node.constant(4, np.ones(len(starts), np.int64)))
    index = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        index[int(axis)] = slice(int(start), None if step < 0 and end < -data.shape[axis] else int(end), int(step))
    return data[tuple(index)]


def _concat(node: Node) -> Any:
    return np.concatenate([_array(node, index) for index in range(len(node.inputs))], axis=node.axis(0))


def _unsqueeze(node: Node) -> Any:
    axes = _axes(node, 1)
    return None if axes is None else np.expand_dims(_array(node, 0), tuple(axes))


def _squeeze(node: Node) -> Any:
    axes = _axes(node, 1)
    return np.squeeze(_array(node, 0), None if axes is None else tuple(axes))


def _cast(node: Node) -> Any:
    return _array(node, 0) if node.attribute("to") in _INTEGERS else None


def _split(node: Node) -> Any:
    data, axis = _array(node, 0), node.axis(0)
    lengths = node.constant_or_attribute("split", 1)
    if lengths is None:
        return list(np.array_split(data, node.outputs, axis))
    return list(np.split(data, np.cumsum(lengths)[:-1], axis))


def _where(node: Node) -> Any:
    condition = node.constant(0)
    return np.where(condition, _array(node, 1).astype(object), _array(node, 2).astype(object))


def _reduce(function: Callable[[Sequence[Any]], Any]) -> Callable[[Node], Any]:
    def evaluate(node: Node) -> Any:
        data, axes = _array(node, 0), _axes(node, 1)
        if data.ndim != 1 or (axes is not None and axes not in ([0], [-1])):
            return None
        result = np.empty((), object)
        result[()] = function(data.tolist())
        return result.reshape(1) if node.attribute("keepdims", 1) else result

    return evaluate


_INTEGERS = {6, 7}  # INT32, INT64
_FUNCTIONS: dict[str, Callable[[Node], Any]] = {
    "Add": _binary(lambda one, two: one + two),
    "Cast": _cast,
    "Concat": _concat,
    "Div": _binary(_divide),
    "Equal": _binary(_compare(sympy.Eq)),
    "Gather": _gather,
    "Greater": _binary(_compare(sympy.Gt)),
    "GreaterOrEqual": _binary(_compare(sympy.Ge)),
    "Identity": lambda node: _array(node, 0),
    "Less": _binary(_compare(sympy.Lt)),
    "LessOrEqual": _binary(_compare(sympy.Le)),
    "Max": _binary(sympy.Max),
    "Min": _binary(sympy.Min),
    "Mod": _binary(lambda one, two: sympy.Mod(one, two)),
    "Mul": _binary(lambda one, two: one * two),
    "ReduceProd": _reduce(lambda sizes: sympy.prod(sizes)),
    "ReduceSum": _reduce(lambda sizes: sum(sizes)),
    "Reshape": lambda node: _array(node, 0).reshape(node.constant(1)),
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Sub": _binary(lambda one, two: one - two),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
