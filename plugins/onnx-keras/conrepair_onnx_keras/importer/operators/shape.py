"""Operators that change or ask for the shape: nothing is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import sympy
from keras import ops

from conrepair_onnx_keras.importer.indexing import add
from conrepair_onnx_keras.importer.node import ImportedNode, broadcast_shape, operator
from conrepair_onnx_keras.importer.shapes import settled
from conrepair_onnx_keras.importer.values import ImportedTensor, Size, Value, inverse, known


@operator()
def shape(node: ImportedNode) -> Any:
    sizes = node.shape(0)[slice(node.attribute("start", 0), node.attribute("end"))]
    return _sizes(list(sizes))


@operator()
def size(node: ImportedNode) -> Any:
    return _sizes([math.prod(node.shape(0), start=1)]).reshape(())


@operator()
def transpose(node: ImportedNode) -> Any:
    axes = node.attribute("perm", list(range(node.rank(0)))[::-1])
    value = node.value(0)
    return [value.transposed(axes) if isinstance(value, ImportedTensor) else value.transpose(axes)]


@operator(constant=("shape",), refuses="targets with two sizes that are unknown, the batch apart")
def reshape(node: ImportedNode) -> Any:
    source = node.shape(0)
    target = node.sizes(1)
    if not node.attribute("allowzero", 0):
        target = [source[axis] if known(wanted) and wanted == 0 else wanted for axis, wanted in enumerate(target)]
    return reshaped(node, node.value(0), target)


@operator()
def flatten(node: ImportedNode) -> Any:
    source, axis = node.shape(0), int(node.attribute("axis", 1))
    axis += len(source) if axis < 0 else 0
    target = [math.prod(source[:axis], start=1), math.prod(source[axis:], start=1)]
    return reshaped(node, node.value(0), target)


@operator(constant=("axes",))
def squeeze(node: ImportedNode) -> Any:
    value, axes = node.value(0), node.constant_or_attribute("axes", 1)
    rank = len(value.shape)
    if axes is None:
        axes = [axis for axis, length in enumerate(value.shape) if known(length) and length == 1]
    gone = {int(axis) % rank for axis in np.atleast_1d(axes)} if len(np.atleast_1d(axes)) else set()
    return reshaped(node, value, [size for axis, size in enumerate(value.shape) if axis not in gone])


@operator(constant=("axes",))
def unsqueeze(node: ImportedNode) -> Any:
    source = node.shape(0)
    axes = [int(axis) for axis in np.atleast_1d(node.constant_or_attribute("axes", 1))]
    rank = len(source) + len(axes)
    new, rest = {axis % rank for axis in axes}, iter(source)
    return reshaped(node, node.value(0), [1 if axis in new else next(rest) for axis in range(rank)])


@operator(constant=("shape",))
def expand(node: ImportedNode) -> Any:
    source, target = node.shape(0), node.sizes(1)
    rank = max(len(source), len(target))
    source = (*[1] * (rank - len(source)), *source)
    target = [*[1] * (rank - len(target)), *target]
    final = broadcast_shape([source, target], node.new_size)
    x = node.stored(reshaped(node, node.value(0), source))
    if all(map(known, [*source, *target])):
        return ops.broadcast_to(x, [int(number) for number in final])
    # A size that only a run knows is borrowed from a tensor that has it, or is the input's own.
    grown = [1 if wanted == mine else wanted for mine, wanted in zip(source, target, strict=True)]
    return node.output(stretched(node, x, grown), None, final)


def stretched(node: ImportedNode, x: Any, sizes: Sequence[Size]) -> Any:
    """The node's first input, as the tensor or array `x`, broadcast to sizes of which some are known by name."""
    dtype = node.dtype(0)
    return (ops.logical_and if dtype == "bool" else ops.multiply)(x, node.ones(sizes, dtype))


@operator(refuses="sizes that depend on values")
def constant_of_shape(node: ImportedNode) -> Any:
    sizes = node.sizes(0)
    value = np.asarray(node.attribute("value", np.zeros(1, np.float32))).reshape(-1)[0]
    ones = node.ones(sizes, str(value.dtype))
    return node.output(ones if value == 1 else ops.full_like(ones, value.item()), None, sizes)


@operator("Range", refuses="steps other than 1 when the length is unknown")
def arange(node: ImportedNode) -> Any:
    start, limit, delta = (np.asarray(node.sizes(index)[0]) for index in range(3))
    if delta.item() != 1:
        node.refuse("its length is unknown, and its step isn't 1")
    count = sympy.sympify(limit.item()) - start.item()
    ones = node.ones([count], "int64")
    return node.output(add(ops.subtract(ops.cumsum(ones, axis=0), 1), int(start.item())), None, [count])


@operator()
def eye_like(node: ImportedNode) -> Any:
    import onnx

    rows, columns = node.known_shape(0)
    code = node.attribute("dtype")
    dtype = node.dtype(0) if code is None else onnx.helper.tensor_dtype_to_np_dtype(code).name
    return np.eye(rows, columns, node.attribute("k", 0)).astype(dtype)


def reshaped(node: ImportedNode, value: Value, target: Sequence[Size]) -> Value:
    """Reshape a value.

    Where axes are split or joined, they are so in the order in which they lie, and nothing is transposed.
    At most one size may be unknown; or two, when one of them is the first and stays so.
    """
    target = _without_minus_one(node, value.shape, list(target))
    if isinstance(value, np.ndarray):
        return value.reshape([int(size) for size in target])
    if list(value.shape) == list(target):
        return value
    groups = regrouped(value.shape, target)
    # What lies in front is written in front: groups are sorted by the place of their first axis.
    places = [min((value.order[axis] for axis in sources), default=-1) for sources, _ in groups]
    sequence = [groups[index] for index in np.argsort(places, kind="stable")]
    before = [axis for sources, _ in sequence for axis in sources]
    after = [axis for _, targets in sequence for axis in targets]
    stored = node.stored(value, inverse(before))
    sizes = [target[axis] for axis in after]
    return node.output(
        reshaped_array(node, stored, sizes, [value.shape[axis] for axis in before]), inverse(after), target
    )


def regrouped(source: Sequence[Size], target: Sequence[Size]) -> list[tuple[list[int], list[int]]]:
    """Which axes become which: the finest pairs of neighbouring axes of equal product, in order."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(source) and j < len(target):
        one, two = [i], [j]
        left, right = source[i], target[j]
        i, j = i + 1, j + 1
        while left != right:
            if known(left) and known(right) and left < right and i < len(source):
                left, i = left * source[i], i + 1
                one.append(i - 1)
            elif known(left) and known(right) and left > right and j < len(target):
                right, j = right * target[j], j + 1
                two.append(j - 1)
            else:
                # Names can't be put in order: what is left is one group.
                one, two = [*one, *range(i, len(source))], [*two, *range(j, len(target))]
                i, j, left = len(source), len(target), right
        groups.append((one, two))
    rest = list(range(i, len(source))), list(range(j, len(target)))
    if any(rest):
        last = groups.pop() if groups else ([], [])
        groups.append((last[0] + rest[0], last[1] + rest[1]))
    return groups


def reshaped_array(node: ImportedNode, stored: Any, target: Sequence[Size], source: Sequence[Size] = ()) -> Any:
    """Reshape a Keras tensor (or array) as it lies.

    Args:
        node: Refuses when too many sizes are unknown.
        stored: What is reshaped.
        target: Sizes; at most one unknown, or two when the first is one of them and is the same in `source`.
        source: Sizes of `stored`.
    """
    numbers = [int(size) if known(size) else -1 for size in target]
    if isinstance(stored, np.ndarray):
        return stored.reshape(numbers)
    unknown = numbers.count(-1)
    if unknown == 2 and numbers[0] == -1 and source and sympy.simplify(target[0] - source[0]) == 0:
        return node.layer(keras.layers.Reshape, stored, target_shape=tuple(numbers[1:]))
    if unknown > 1:
        node.refuse(f"the target shape {list(map(str, target))} has sizes that are unknown; fix them with --input")
    return ops.reshape(stored, numbers)


def _without_minus_one(node: ImportedNode, source: Sequence[Size], target: list[Size]) -> list[Size]:
    places = [axis for axis, wanted in enumerate(target) if known(wanted) and wanted == -1]
    if not places:
        return target
    rest = [wanted for axis, wanted in enumerate(target) if axis not in places]
    total, product = math.prod(source, start=1), math.prod(rest, start=1)
    if product == 0:
        node.refuse("the target shape has 0 beside -1")
    left = sympy.cancel(sympy.sympify(total) / sympy.sympify(product))
    target[places[0]] = int(left) if known(left) else left
    return target


def _sizes(sizes: list[Size]) -> Any:
    result = np.empty(len(sizes), object)
    result[:] = sizes
    return settled(result)
