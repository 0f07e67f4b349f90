"""Reductions along axes, and searches for extremes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.operators.arithmetic import truncated_quotient
from conrepair_onnx_keras.importer.values import inverse


def _itself(x: Any) -> Any:
    return x


_REDUCTIONS = {
    "ReduceL1": (ops.absolute, ops.sum, _itself),
    "ReduceL2": (ops.square, ops.sum, ops.sqrt),
    "ReduceLogSum": (_itself, ops.sum, ops.log),
    "ReduceLogSumExp": (_itself, ops.logsumexp, _itself),
    "ReduceMax": (_itself, ops.max, _itself),
    "ReduceMean": (_itself, ops.mean, _itself),
    "ReduceMin": (_itself, ops.min, _itself),
    "ReduceProd": (_itself, ops.prod, _itself),
    "ReduceSum": (_itself, ops.sum, _itself),
    "ReduceSumSquare": (ops.square, ops.sum, _itself),
}  # what is done with each number, with all along the axes, and with that
_REAL = {"ReduceL2", "ReduceLogSum", "ReduceLogSumExp"}  # of integers, too, computed in real numbers


@operator(*_REDUCTIONS, constant=("axes",))
def reduction(node: ImportedNode) -> Any:
    value = node.computed(node.value(0))
    axes = node.constant_or_attribute("axes", 1) or []
    noop = node.attribute("noop_with_empty_axes", 0)  # says nothing where there are axes
    keep = bool(node.attribute("keepdims", 1))  # says nothing where nothing is reduced
    before, reduced, behind = _REDUCTIONS[node.operator]
    if not axes and noop:
        if before is behind:
            return [value]
        alone = ops.absolute if node.operator == "ReduceL2" else lambda x: behind(before(x))
        return node.elementwise(alone, [0])
    gone = {int(axis) % value.rank for axis in axes} if axes else set(range(value.rank))
    stored_axes = tuple(sorted(value.order[axis] for axis in gone))
    x = value.stored
    if node.dtype(0) == "bool":
        reduced = {"ReduceMax": ops.any, "ReduceMin": ops.all}[node.operator]
    elif "int" in node.dtype(0) and node.operator in _REAL:
        x = ops.cast(x, "float64")
    elif "int" in node.dtype(0) and node.operator == "ReduceMean":
        reduced = _integer_mean(node, gone)
    y = behind(reduced(before(x), axis=stored_axes, keepdims=keep))
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
        return truncated_quotient(total, ops.full_like(total, count))

    return mean


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


@operator(constant=("K",), ignores=("sorted",))
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
