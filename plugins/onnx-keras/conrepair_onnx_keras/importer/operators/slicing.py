"""Operators that pick, join and repeat parts of tensors."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from conrepair.formats.onnx.passes.sizes import slice_of
from conrepair_onnx_keras.importer.indexing import add
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.operators.shape import stretched
from conrepair_onnx_keras.importer.shapes import split_lengths
from conrepair_onnx_keras.importer.values import ImportedTensor, inverse, known

_FAR = 2**31 - 1
_TABLES = {"float16", "float32"}  # others lose by what an Embedding computes in


@operator("Slice", constant=("starts", "ends", "axes", "steps"))
def slices(node: ImportedNode) -> Any:
    value = node.value(0)
    if not isinstance(value, ImportedTensor):
        return _rows_of_table(node)
    starts, ends = node.constant_or_attribute("starts", 1), _ends(node)
    axes = node.constant_or_attribute("axes", 3, list(range(len(starts))))
    steps = node.constant_or_attribute("steps", 4, [1] * len(starts))
    index, shape = [slice(None)] * value.rank, list(value.shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = value.shape[axis]
        part = slice_of(start, end, step, int(size)) if known(size) else _open_slice(node, start, end, step)
        index[value.order[axis]] = part
        if part != slice(None):
            # What is left of an open axis is a size of its own.
            shape[axis] = len(range(*part.indices(int(size)))) if known(size) else node.new_size(axis)
    if all(part == slice(None) for part in index):
        return [value]
    return node.output(value.stored[tuple(index)], value.order, shape)


def _rows_of_table(node: ImportedNode) -> Any:
    """The first rows of a constant, as many as a size known by name says: positions up to the sequence's length."""
    x, sizes = node.tensor(0), node.sizes(2)
    axes = node.constant(3, np.arange(len(sizes))).tolist()
    steps = node.constant(4, np.ones(len(sizes), int)).tolist()
    shape = list(node.shape(0))
    for axis, start, end, step in zip(axes, node.constant(1).tolist(), sizes, steps, strict=True):
        if known(end):
            x = x[(*[slice(None)] * (axis % len(shape)), slice_of(start, int(end), step, shape[axis]))]
            shape[axis] = x.shape[axis]
        elif (start, step) == (0, 1):
            x, shape[axis] = (
                ops.take(x, ops.subtract(ops.cumsum(node.ones([end], "int64"), axis=0), 1), axis=axis),
                end,
            )
        else:
            node.refuse(f"the end {end} is known only by name, and it isn't the first rows that are wanted")
    return node.output(x, None, shape)


def _ends(node: ImportedNode) -> list[int]:
    """Sizes by name stand for "to the end" when they are that axis's own size."""
    if "ends" in node.ir.attributes or node.is_constant(2):
        return list(node.constant_or_attribute("ends", 2))
    sizes, shape = node.sizes(2), node.shape(0)
    axes = node.constant_or_attribute("axes", 3, list(range(len(sizes))))
    result = []
    for axis, size in zip(axes, sizes, strict=True):
        if not known(size) and (size != shape[axis] or min(node.constant(4, np.ones(1, int))) < 0):
            node.refuse(f"the end {size} is known only by name; fix sizes with --input")
        result.append(int(size) if known(size) else _FAR)
    return result


def _open_slice(node: ImportedNode, start: int, end: int, step: int) -> slice:
    """The same of an axis whose size isn't known: only what means the same for every size."""
    if step < 0:
        if start < -1:
            node.refuse(f"a start of {start} with step {step} depends on an unknown size; fix it with --input")
        return slice(None if start >= _FAR or start == -1 else start, None if abs(end) >= _FAR else end, step)
    if (start == 0 or start <= -_FAR) and end >= _FAR and step == 1:
        return slice(None)
    return slice(start if start > -_FAR else None, None if end >= _FAR else end, step)


@operator()
def gather(node: ImportedNode) -> Any:
    axis = node.axis(0)
    if node.is_constant(0) and node.rank(0) == 2 and axis == 0 and node.dtype(0) in _TABLES:
        table = node.constant(0)
        rows, width = table.shape
        y = node.layer(keras.layers.Embedding, node.tensor(1), weights=[table], input_dim=rows, output_dim=width)
        return node.output(y, None, (*node.shape(1), width))
    x, shape, indices = node.tensor(0), list(node.shape(0)), node.tensor(1)
    if node.is_constant(1):
        indices = np.asarray(node.constant(1))
        if known(shape[axis]):
            indices = np.where(indices < 0, indices + int(shape[axis]), indices)
        if indices.ndim == 0:
            return node.output(x[(*[slice(None)] * axis, int(indices))], None, shape[:axis] + shape[axis + 1 :])
    return node.output(ops.take(x, indices, axis=axis), None, [*shape[:axis], *node.shape(1), *shape[axis + 1 :]])


@operator()
def concat(node: ImportedNode) -> Any:
    rank = node.rank(0)
    axis = node.axis(0)
    values = [node.value(index) for index in range(len(node.inputs))]
    order = next(
        (v.order for v in values if isinstance(v, ImportedTensor) and v.order != tuple(range(rank))), range(rank)
    )
    shape = list(node.shape(0))
    shape[axis] = sum(value.shape[axis] for value in values)
    y = ops.concatenate([node.stored(value, order) for value in values], axis=order[axis])
    return node.output(y, order, shape)


@operator(constant=("split",))
def split(node: ImportedNode) -> Any:
    value, axis = node.computed(node.value(0)), node.axis(0)
    size = node.known_shape(0, [axis])[0]
    results, start = [], 0
    for length in split_lengths(node, size):
        part = value.stored[(*[slice(None)] * value.order[axis], slice(start, start + length))]
        shape = list(value.shape)
        shape[axis] = length
        results.append(node.output(part, value.order, shape))
        start += length
    return results


@operator(constant=("repeats",))
def tile(node: ImportedNode) -> Any:
    source, repeats = node.shape(0), node.sizes(1)
    shape = [size * number for size, number in zip(source, repeats, strict=True)]
    if any(
        not known(number) and not (known(size) and size == 1) for size, number in zip(source, repeats, strict=True)
    ):
        node.refuse("an axis longer than 1 is repeated a number of times that is known only by name")
    times = [int(number) if known(number) else 1 for number in repeats]
    x = ops.tile(node.tensor(0), times) if any(number != 1 for number in times) else node.tensor(0)
    if all(map(known, repeats)):
        return node.output(x, None, shape)
    return node.output(stretched(node, x, [1 if known(number) else number for number in repeats]), None, shape)


@operator(constant=("pads", "axes"))
def pad(node: ImportedNode) -> Any:
    value = node.computed(node.value(0))
    flat = node.constant_or_attribute("pads", 1)
    axes = node.constant_or_attribute("axes", 3, list(range(value.rank)))
    pads = [(0, 0)] * value.rank
    for place, axis in enumerate(axes):
        pads[int(axis) % value.rank] = (int(flat[place]), int(flat[len(axes) + place]))
    mode = node.attribute("mode", "constant")
    fill = node.attribute("value", 0.0) if "value" in node.ir.attributes else _fill(node)
    x, shape = value.stored, list(value.shape)
    if any(min(pair) < 0 for pair in pads):
        x = _cut(x, value, pads)
        shape = [size + min(before, 0) + min(behind, 0) for size, (before, behind) in zip(shape, pads, strict=True)]
        pads = [(max(before, 0), max(behind, 0)) for before, behind in pads]
    final = [size + before + behind for size, (before, behind) in zip(shape, pads, strict=True)]
    if mode == "constant":
        stored_pads = [pads[axis] for axis in inverse(value.order)]
        if isinstance(fill, ImportedTensor):
            inside = ops.pad(ops.ones_like(x, dtype="bool"), stored_pads)
            return node.output(ops.where(inside, ops.pad(x, stored_pads), fill.stored), value.order, final)
        number = np.asarray(fill).reshape(-1)[0] if np.asarray(fill).size else 0
        x = ops.pad(x, stored_pads, constant_values=np.asarray(number).item()) if any(map(any, pads)) else x
        return node.output(x, value.order, final)
    for axis, pair in enumerate(pads):
        if any(pair):
            if not known(shape[axis]):
                node.refuse(f"with mode {mode} the size of axis {axis} must be known; fix it with --input")
            picked = np.pad(np.arange(int(shape[axis])), pair, mode=mode)
            x = ops.take(x, picked, axis=value.order[axis])
    return node.output(x, value.order, final)


def _fill(node: ImportedNode) -> Any:
    """What is put around the input: a number, or one that the model computes."""
    if not node.has(2) or node.attribute("mode", "constant") != "constant":
        return np.zeros(())
    return node.value(2) if isinstance(node.value(2), ImportedTensor) else node.constant(2)


def _cut(x: Any, value: ImportedTensor, pads: list[tuple[int, int]]) -> Any:
    index: list[Any] = [slice(None)] * value.rank
    for axis, (before, behind) in enumerate(pads):
        index[value.order[axis]] = slice(max(-before, 0), -max(-behind, 0) or None)
    return x[tuple(index)]


@operator()
def depth_to_space(node: ImportedNode) -> Any:
    block = node.attribute("blocksize")
    channels, height, width = node.known_shape(0, [1, 2, 3])
    deep = channels // block**2
    x = node.channels_last(0)
    if node.attribute("mode", "DCR") == "DCR":
        parts = ops.transpose(ops.reshape(x, [-1, height, width, block, block, deep]), [0, 1, 3, 2, 4, 5])
    else:
        parts = ops.transpose(ops.reshape(x, [-1, height, width, deep, block, block]), [0, 1, 4, 2, 5, 3])
    return node.from_channels_last(ops.reshape(parts, [-1, height * block, width * block, deep]))


@operator()
def space_to_depth(node: ImportedNode) -> Any:
    block = node.attribute("blocksize")
    channels, height, width = node.known_shape(0, [1, 2, 3])
    rows, columns = height // block, width // block
    parts = ops.reshape(node.channels_last(0), [-1, rows, block, columns, block, channels])
    crd = node.attribute("mode", "DCR") == "CRD"
    parts = ops.transpose(parts, [0, 1, 3, 5, 2, 4] if crd else [0, 1, 3, 2, 4, 5])
    return node.from_channels_last(ops.reshape(parts, [-1, rows, columns, channels * block**2]))


@operator(constant=("k",))
def trilu(node: ImportedNode) -> Any:
    k = int(np.asarray(node.constant(1, 0)).item())
    rows, columns = node.shape(0)[-2:]
    upper, x = node.attribute("upper", 1), node.tensor(0)
    if known(rows) and known(columns):
        mask = (np.triu if upper else np.tril)(np.ones((rows, columns), bool), k)
    else:
        row, column = (ops.cumsum(node.ones([size], "int64"), axis=0) for size in (rows, columns))
        distance = ops.subtract(column, ops.expand_dims(row, 1))
        mask = (ops.greater_equal if upper else ops.less_equal)(distance, k)
    return node.output(ops.where(mask, x, ops.zeros_like(x)), None, node.shape(0))


@operator(constant=("depth",))
def one_hot(node: ImportedNode) -> Any:
    depth = int(np.asarray(node.constant(1)).item())
    values, rank = node.tensor(2), node.rank(0) + 1
    axis = node.axis(-1, rank)
    indices = ops.cast(node.tensor(0), "int64")
    indices = ops.where(ops.less(indices, 0), add(indices, depth), indices)
    hot = ops.one_hot(indices, depth, axis=-1 if axis == rank - 1 else axis, dtype="bool")
    shape = [*node.shape(0)[:axis], depth, *node.shape(0)[axis:]]
    # Arrays without axes lose their type in Keras's files.
    return node.output(ops.where(hot, values[(slice(1, 2),)], values[(slice(0, 1),)]), None, shape)


@operator(constant=("condition",))
def compress(node: ImportedNode) -> Any:
    chosen = np.flatnonzero(node.constant(1))
    if "axis" not in node.ir.attributes:
        return ops.take(ops.reshape(node.tensor(0), [-1]), chosen, axis=0)
    return ops.take(node.tensor(0), chosen, axis=node.axis(0))
