"""Arithmetic with sizes that are known by name: what exporters write between Shape and Reshape.

Each function computes one operator on arrays of dtype object, as numpy does on numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from conrepair.importer.values import Array, is_symbolic, known

if TYPE_CHECKING:
    from conrepair.importer.node import ImportedNode

__all__ = ["evaluate_sizes", "settled", "slice_of", "split_lengths"]


def evaluate_sizes(node: ImportedNode) -> list[Array] | None:
    """The outputs of a node of sizes; None when there's no arithmetic for its operator here."""
    function = _FUNCTIONS.get(node.operator)
    if function is None or node.ir.domain not in {"", "ai.onnx"}:
        return None
    result = function(node)
    if result is None:
        return None
    node.refuse_unread(())
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


def _array(node: ImportedNode, index: int) -> Array:
    return np.asarray(node.value(index))


def _axes(node: ImportedNode, index: int) -> list[int] | None:
    axes = node.constant_or_attribute("axes", index)
    return None if axes is None else [int(axis) for axis in np.atleast_1d(axes)]


def _each(function: Callable[..., Any]) -> Callable[[ImportedNode], Any]:
    """A function of as many sizes as the node has inputs, element by element."""

    def evaluate(node: ImportedNode) -> Any:
        arrays = np.broadcast_arrays(*(_array(node, index) for index in range(len(node.inputs))))
        items = [function(*sizes) for sizes in zip(*(array.reshape(-1).tolist() for array in arrays), strict=True)]
        if any(item is None for item in items):
            return None
        result = np.empty(len(items), object)
        result[:] = items
        return result.reshape(arrays[0].shape)

    return evaluate


def _compare(relation: Any) -> Callable[[Any, Any], bool | None]:
    def compare(one: Any, two: Any) -> bool | None:
        answer = relation(sympy.sympify(one), sympy.sympify(two))
        return bool(answer) if answer in (sympy.true, sympy.false) else None

    return compare


def _divide(one: Any, two: Any) -> Any:
    """Division truncates towards zero; of sizes whose sign isn't known it's left to the run."""
    quotient = sympy.sympify(one) / sympy.sympify(two)
    if quotient.is_integer:
        return quotient
    if quotient.is_nonnegative:
        return sympy.floor(quotient)
    return -sympy.floor(-quotient) if quotient.is_nonpositive else None


def _modulo(node: ImportedNode) -> Any:
    """The sign is the divisor's; what fmod asks for, the dividend's, is left to the run."""
    return None if node.attribute("fmod", 0) else _each(sympy.Mod)(node)


def _gather(node: ImportedNode) -> Any:
    return np.take(_array(node, 0), node.constant(1), axis=node.axis(0))


def _slice(node: ImportedNode) -> Any:
    if any(is_symbolic(value) for value in node.inputs[1:]):
        return None
    data = _array(node, 0)
    starts = np.atleast_1d(node.constant_or_attribute("starts", 1))
    ends = np.atleast_1d(node.constant_or_attribute("ends", 2))
    axes = np.atleast_1d(node.constant_or_attribute("axes", 3, list(range(len(starts)))))
    steps = np.atleast_1d(node.constant(4, np.ones(len(starts), np.int64)))
    index = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        index[int(axis)] = slice_of(int(start), int(end), int(step), data.shape[axis])
    return data[tuple(index)]


def slice_of(start: int, end: int, step: int, size: int) -> slice:
    """What ONNX's Slice picks from an axis, as a slice of numbers within the axis.

    Two things differ from numpy: with a negative step a start in front of the axis is its first cell, and the largest
    int32 and int64 mean "to the end" whatever the direction.
    """
    lowest, highest = (-1, size - 1) if step < 0 else (0, size)
    first = min(max(start + size if start < 0 else start, 0), highest)
    if end in (2**31 - 1, 2**63 - 1):
        behind = lowest if step < 0 else size
    else:
        behind = min(max(end + size if end < 0 else end, lowest), size)
    if not range(first, behind, step):
        return slice(0, 0)
    if (first, behind, step) == (0, size, 1):
        return slice(None)
    return slice(first, None if behind in {lowest, size} else behind, step)


def _concat(node: ImportedNode) -> Any:
    return np.concatenate([_array(node, index) for index in range(len(node.inputs))], axis=node.axis(0))


def _unsqueeze(node: ImportedNode) -> Any:
    axes = _axes(node, 1)
    return None if axes is None else np.expand_dims(_array(node, 0), tuple(axes))


def _squeeze(node: ImportedNode) -> Any:
    axes = _axes(node, 1)
    return np.squeeze(_array(node, 0), None if axes is None else tuple(axes))


def _cast(node: ImportedNode) -> Any:
    return _array(node, 0) if node.attribute("to") in _INTEGERS else None


def _split(node: ImportedNode) -> Any:
    data, axis = _array(node, 0), node.axis(0)
    return list(np.split(data, np.cumsum(split_lengths(node, data.shape[axis]))[:-1], axis))


def split_lengths(node: ImportedNode, size: int) -> list[int]:
    """Lengths of the parts that a Split makes of an axis: the last ones may be shorter."""
    lengths = node.constant_or_attribute("split", 1)
    if lengths is not None:
        return [int(length) for length in lengths]
    count = node.attribute("num_outputs", len(node.ir.outputs))
    each = -(-size // count)
    return [max(min(each, size - each * index), 0) for index in range(count)]


def _reshape(node: ImportedNode) -> Any:
    data, target = _array(node, 0), node.constant(1).tolist()
    if not node.attribute("allowzero", 0):
        target = [data.shape[axis] if wanted == 0 else wanted for axis, wanted in enumerate(target)]
    return data.reshape(target)


def _where(node: ImportedNode) -> Any:
    condition = node.constant(0)
    return np.where(condition, _array(node, 1).astype(object), _array(node, 2).astype(object))


def _reduce(function: Callable[[Sequence[Any]], Any]) -> Callable[[ImportedNode], Any]:
    def evaluate(node: ImportedNode) -> Any:
        data, axes = _array(node, 0), _axes(node, 1)
        if data.ndim != 1 or (axes is not None and axes not in ([0], [-1])):
            return None
        result = np.empty((), object)
        result[()] = function(data.tolist())
        return result.reshape(1) if node.attribute("keepdims", 1) else result

    return evaluate


_INTEGERS = {6, 7}  # INT32, INT64
_FUNCTIONS: dict[str, Callable[[ImportedNode], Any]] = {
    "Add": _each(lambda one, two: one + two),
    "Cast": _cast,
    "Concat": _concat,
    "Div": _each(_divide),
    "Equal": _each(_compare(sympy.Eq)),
    "Gather": _gather,
    "Greater": _each(_compare(sympy.Gt)),
    "GreaterOrEqual": _each(_compare(sympy.Ge)),
    "Identity": lambda node: _array(node, 0),
    "Less": _each(_compare(sympy.Lt)),
    "LessOrEqual": _each(_compare(sympy.Le)),
    "Max": _each(sympy.Max),
    "Min": _each(sympy.Min),
    "Mod": _modulo,
    "Mul": _each(lambda one, two: one * two),
    "ReduceProd": _reduce(lambda sizes: sympy.prod(sizes)),
    "ReduceSum": _reduce(lambda sizes: sum(sizes)),
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Sub": _each(lambda one, two: one - two),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
