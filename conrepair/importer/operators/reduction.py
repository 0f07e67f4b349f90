"""Reductions along axes, and searches for extremes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras import ops

from conrepair.importer.node import ImportedNode
from conrepair.importer.operators.arithmetic import truncated_quotient
from conrepair.importer.rules import operator
from conrepair.importer.values import ImportedTensor, inverse


def _l1(x: Any, **axes: Any) -> Any:
    return ops.sum(ops.absolute(x), **axes)


def _l2(x: Any, **axes: Any) -> Any:
    return ops.sqrt(ops.sum(ops.square(x), **axes))


def _log_sum(x: Any, **axes: Any) -> Any:
    return ops.log(ops.sum(x, **axes))


def _sum_square(x: Any, **axes: Any) -> Any:
    return ops.sum(ops.square(x), **axes)


_FUNCTIONS = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": ops.logsumexp,
    "ReduceMax": ops.max,
    "ReduceMean": ops.mean,
    "ReduceMin": ops.min,
    "ReduceProd": ops.prod,
    "ReduceSum": ops.sum,
    "ReduceSumSquare": _sum_square,
}


@operator(*_FUNCTIONS, constant=("axes",))
def reduction(node: ImportedNode) -> Any:
    value = node.value(0)
    assert isinstance(value, ImportedTensor)  # noqa: S101 - constants don't reach rules
    axes = node.constant_or_attribute("axes", 1) or []
    noop = node.attribute("noop_with_empty_axes", 0)  # says nothing where there are axes
    keep = bool(node.attribute("keepdims", 1))  # says nothing where nothing is reduced
    if not axes and noop:
        return [value] if node.operator in _PLAIN else node.elementwise(_ALONE[node.operator], [0])
    gone = {int(axis) % value.rank for axis in axes} if axes else set(range(value.rank))
    stored_axes = tuple(sorted(value.order[axis] for axis in gone))
    function = _FUNCTIONS[node.operator]
    if node.dtype(0) == "bool":
        function = {"ReduceMax": ops.any, "ReduceMin": ops.all}[node.operator]
    if "int" in node.dtype(0) and node.operator in _OF_INTEGERS:
        function = _OF_INTEGERS[node.operator](node, gone)
    y = function(value.stored, axis=stored_axes, keepdims=keep)
    if str(y.dtype) != node.dtype(0):
        y = ops.cast(y, node.dtype(0))  # Keras widens sums of small integers
    if keep:
        return node.output(y, value.order, [1 if axis in gone else size for axis, size in enumerate(value.shape)])
    left = [axis for axis in range(value.rank) if axis not in gone]
    ranked = sorted(value.order[axis] for axis in left)
    order = [ranked.index(value.order[axis]) for axis in left]
    return node.output(y, order, [value.shape[axis] for axis in left])


def _integer_mean(node: ImportedNode, gone: set[int]) -> Any:
    """Keras takes the mean of integers in float32."""
    count = math.prod(node.known_shape(0, sorted(gone)))

    def mean(x: Any, **axes: Any) -> Any:
        total = ops.sum(ops.cast(x, "int64"), **axes)
        return ops.cast(truncated_quotient(total, ops.full_like(total, count)), x.dtype)

    return mean


def _in_double(function: Any) -> Any:
    def of_integers(node: ImportedNode, _: set[int]) -> Any:
        return lambda x, **axes: ops.cast(function(ops.cast(x, "float64"), **axes), node.dtype(0))

    return of_integers


_OF_INTEGERS = {
    "ReduceL2": _in_double(_l2),
    "ReduceLogSum": _in_double(_log_sum),
    "ReduceLogSumExp": _in_double(ops.logsumexp),
    "ReduceMean": _integer_mean,
}
_PLAIN = {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceLogSumExp"}
_ALONE = {"ReduceL1": ops.absolute, "ReduceL2": ops.absolute, "ReduceLogSum": ops.log, "ReduceSumSquare": ops.square}


def one_zero(x: Any) -> Any:
    """Without -0, which for Keras is less than 0 when it looks for the place of an extreme."""
    return ops.where(ops.equal(x, 0), ops.zeros_like(x), x) if "float" in str(x.dtype) else x


@operator("ArgMax", "ArgMin")
def argument(node: ImportedNode) -> Any:
    function = ops.argmax if node.operator == "ArgMax" else ops.argmin
    axis, x = node.axis(0), node.tensor(0)
    x = one_zero(x)
    keep = bool(node.attribute("keepdims", 1))
    if node.attribute("select_last_index", 0):
        last = x.shape[axis]
        if last is None:
            node.refuse("with select_last_index the size along its axis must be known")
        y = ops.subtract(last - 1, function(ops.flip(x, axis=axis), axis=axis, keepdims=keep))
    else:
        y = function(x, axis=axis, keepdims=keep)
    shape = [*node.shape(0)]
    shape[axis : axis + 1] = [1] if keep else []
    return node.output(ops.cast(y, "int64"), None, shape)


@operator("TopK", constant=("K",), ignores=("sorted",))
def top_k(node: ImportedNode) -> Any:
    k = int(node.attribute("k", 0) or np.asarray(node.constant(1)).item())
    axis, rank, dtype = node.axis(-1), node.rank(0), node.dtype(0)
    swap = [place for place in range(rank) if place != axis] + [axis]
    x = node.tensor(0, inverse(swap))
    if node.attribute("largest", 1):
        values, indices = ops.top_k(x, k)
    else:
        # Of integers the lowest has no negative; turning all bits reverses their order as well.
        reverse = ops.negative if "float" in dtype else ops.bitwise_not
        values, indices = ops.top_k(reverse(x), k)
        values = reverse(values)
    order = inverse(swap)
    shape = [k if place == axis else size for place, size in enumerate(node.shape(0))]
    return [node.output(values, order, shape), node.output(ops.cast(indices, "int64"), order, shape)]
