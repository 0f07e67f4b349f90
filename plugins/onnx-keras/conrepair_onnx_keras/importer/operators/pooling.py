"""Pooling, with ONNX's rules for padding, rounding up and counting, and images put together from patches or cells."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.indexing import add
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.values import Array, known
from conrepair_onnx_keras.importer.window import Window, padded, window_of


@operator(constant=("image_shape", "block_shape"), refuses="an unknown number of blocks")
def col2im(node: ImportedNode) -> Any:
    """Each cell of the image adds up what the blocks have for it; a table says where that stands."""
    image, block = node.constant(1).tolist(), node.constant(2).tolist()
    table = _sources(node, image, block)
    rows, blocks = node.known_shape(0, [1, 2])
    channels, taps = rows // math.prod(block), math.prod(block)
    x = ops.transpose(ops.reshape(node.tensor(0), [-1, channels, taps * blocks]), (0, 2, 1))
    x = ops.pad(x, [(0, 0), (0, 1), (0, 0)])  # the last row is what stands for "no block has this cell"
    y = ops.sum(ops.take(x, table, axis=1), axis=2)
    return node.from_channels_last(ops.reshape(y, [-1, *image, channels]), [node.shape(0)[0], channels, *image])


def _sources(node: ImportedNode, image: list[int], block: list[int]) -> Array:
    """For each cell and tap of the block, the row that holds it: [cells, taps]."""
    axes = len(image)
    strides = node.attribute("strides", [1] * axes)
    dilations = node.attribute("dilations", [1] * axes)
    pads = node.attribute("pads", [0] * 2 * axes)
    counts = [
        (image[axis] + pads[axis] + pads[axes + axis] - dilations[axis] * (block[axis] - 1) - 1) // strides[axis] + 1
        for axis in range(axes)
    ]
    cells = np.stack(np.meshgrid(*map(np.arange, image), indexing="ij"), -1).reshape(-1, 1, axes)
    taps = np.stack(np.meshgrid(*map(np.arange, block), indexing="ij"), -1).reshape(1, -1, axes)
    shift = cells + np.array(pads[:axes]) - taps * np.array(dilations)
    place, rest = np.divmod(shift, strides)
    found = ((rest == 0) & (place >= 0) & (place < counts)).all(axis=-1)
    number = np.ravel_multi_index(np.moveaxis(place, -1, 0), counts, mode="clip")
    rows = np.arange(math.prod(block)) * math.prod(counts) + number
    table: Array = np.where(found, rows, math.prod(block) * math.prod(counts))
    return table


@operator(constant=("output_shape",), refuses="unknown sizes, another output_shape than the window's")
def max_unpool(node: ImportedNode) -> Any:
    kernel = node.attribute("kernel_shape")
    axes, sizes = len(kernel), node.known_shape(0)
    strides, pads = node.attribute("strides", [1] * axes), node.attribute("pads", [0] * 2 * axes)
    spatial = [
        (size - 1) * strides[axis] - pads[axis] - pads[axes + axis] + kernel[axis]
        for axis, size in enumerate(sizes[2:])
    ]
    shape = [*sizes[:2], *spatial]
    if node.has(2) and node.constant(2).tolist() != shape:
        node.refuse(f"output_shape isn't {shape}, and implementations disagree on what the indices count then")
    values, total = ops.reshape(node.tensor(0), [-1]), math.prod(shape)
    if total < math.prod(sizes):
        node.refuse(f"the output {shape} has fewer cells than the input")
    canvas = ops.zeros_like(ops.pad(values, [(0, total - math.prod(sizes))]))
    places = np.reshape if node.is_constant(1) else ops.reshape
    return ops.reshape(ops.scatter_update(canvas, places(node.tensor(1), [-1, 1]), values), shape)


@operator(ignores=("storage_order",), refuses="ceil_mode with unknown sizes")
def max_pool(node: ImportedNode) -> Any:
    window = _window(node)
    x, dtype = node.channels_last(0), node.dtype(0)
    own = dtype == "float32" or (dtype in {"float16", "bfloat16"} and len(window.kernel) < 3)  # TensorFlow has these
    simple = own and max(window.dilations) == 1 and node.outputs == 1 and len(window.kernel) < 4
    if simple and window.is_same:
        return node.from_channels_last(_pool(ops.max_pool, x, window, "same"))
    if "float" in dtype:
        lowest = -math.inf
    elif node.outputs == 1:
        lowest = np.iinfo(dtype).min
    else:  # what's put around must be no maximum, whose place is asked for
        x, lowest = ops.cast(x, "int32"), np.iinfo(dtype).min - 1
    x = padded(x, window.pads, lowest)
    if simple:
        return node.from_channels_last(_pool(ops.max_pool, x, window, "valid"))
    taps = _taps(x, window)
    if node.outputs == 1:
        return node.from_channels_last(reduce(ops.maximum, taps))
    stacked = ops.stack(taps, axis=0)
    highest = ops.cast(ops.max(stacked, axis=0), dtype)
    return [node.from_channels_last(highest), _positions(node, stacked, window)]


@operator(refuses="ceil_mode with unknown sizes")
def average_pool(node: ImportedNode) -> Any:
    window = _window(node)
    x, with_pads = node.channels_last(0), bool(node.attribute("count_include_pad", 0))
    simple = max(window.dilations) == 1 and len(window.kernel) < 4
    if simple and window.is_same and (not with_pads or window.unpadded):
        return node.from_channels_last(_pool(ops.average_pool, x, window, "same"))
    declared = _declared_pads(node, window) if with_pads else None
    y = _average(padded(x, window.pads), window, simple)
    if all(map(known, window.sizes)):
        share = _share(window, declared)
        return node.from_channels_last(y if np.all(share == 1) else ops.divide(y, share.astype(node.dtype(0))))
    if with_pads or window.unpadded:
        return node.from_channels_last(y)
    inside = _average(padded(ops.ones_like(x[..., :1]), window.pads), window, simple)
    return node.from_channels_last(ops.divide(y, inside))


@operator(refuses="ceil_mode with unknown sizes")
def lp_pool(node: ImportedNode) -> Any:
    window, p = _window(node), node.attribute("p", 2)
    powers = ops.power(ops.absolute(padded(node.channels_last(0), window.pads)), p)
    return node.from_channels_last(ops.power(reduce(add, _taps(powers, window)), 1 / p))


@operator("GlobalAveragePool", "GlobalMaxPool")
def global_pool(node: ImportedNode) -> Any:
    x = node.channels_last(0)
    axes = tuple(range(1, node.rank(0) - 1))
    function = ops.mean if node.operator == "GlobalAveragePool" else ops.max
    return node.from_channels_last(function(x, axis=axes, keepdims=True))


@operator()
def global_lp_pool(node: ImportedNode) -> Any:
    p, axes = node.attribute("p", 2), tuple(range(1, node.rank(0) - 1))
    total = ops.sum(ops.power(ops.absolute(node.channels_last(0)), p), axis=axes, keepdims=True)
    return node.from_channels_last(ops.power(total, 1 / p))


def _window(node: ImportedNode) -> Window:
    """The window, with the cells behind the input that ceil_mode asks for."""
    window = window_of(node, node.attribute("kernel_shape"))
    if not node.attribute("ceil_mode", 0) or max(window.strides) == 1:
        return window
    pads = []
    for size, extent, stride, (before, behind) in zip(
        window.sizes, window.extent, window.strides, window.pads, strict=True
    ):
        if not known(size):
            node.refuse("with ceil_mode the spatial sizes must be known; fix them with --input")
        count = -(-(int(size) + before + behind - extent) // stride) + 1
        if (count - 1) * stride >= int(size) + before:
            count -= 1  # a window that would begin behind the input isn't one
        pads.append((before, (count - 1) * stride + extent - int(size) - before))
    return replace(window, pads=tuple(pads))


def _declared_pads(node: ImportedNode, window: Window) -> list[tuple[int, int]]:
    """The padding that counts as input; what ceil_mode adds behind it doesn't."""
    declared = window_of(node, window.kernel).pads
    return [(before, min(behind, more)) for (before, behind), (_, more) in zip(declared, window.pads, strict=True)]


def _share(window: Window, declared: list[tuple[int, int]] | None) -> Array:
    """Which part of each window's taps is counted; [1, spatial..., 1]."""
    result = np.ones((1,), np.float64)
    for axis, size in enumerate(window.sizes):
        before, behind = window.pads[axis]
        counted = np.zeros(before + int(size) + behind)
        extra = (0, 0) if declared is None else declared[axis]
        counted[before - extra[0] : before + int(size) + extra[1]] = 1
        positions = np.arange(0, len(counted) - window.extent[axis] + 1, window.strides[axis])
        taps = np.arange(window.kernel[axis]) * window.dilations[axis]
        along = counted[positions[:, None] + taps].mean(axis=1)
        result = result[..., None] * along
    return result[..., None]


def _average(x: Any, window: Window, simple: bool) -> Any:
    if simple:
        return _pool(ops.average_pool, x, window, "valid")
    return ops.divide(reduce(add, _taps(x, window)), math.prod(window.kernel))


def _pool(function: Any, x: Any, window: Window, padding: str) -> Any:
    return function(x, window.kernel, window.strides, padding, data_format="channels_last")


def _taps(x: Any, window: Window) -> list[Any]:
    """For each tap of the window, what it sees at all positions; x is padded already."""
    result = []
    for offsets in itertools.product(*map(range, window.kernel)):
        index = [slice(None)]
        for offset, step, extent, stride in zip(
            offsets, window.dilations, window.extent, window.strides, strict=True
        ):
            start = offset * step
            index.append(slice(start, start - (extent - 1) or None, stride))
        result.append(x[tuple(index)])
    return result


def _positions(node: ImportedNode, stacked: Any, window: Window) -> Any:
    """Where each maximum lies in the input, counted over the whole of [N, C, spatial...]."""
    shape = node.known_shape(0)
    grid = np.arange(math.prod(shape)).reshape(shape)
    if node.attribute("storage_order", 0):
        flipped = [*shape[:2], *shape[:1:-1]]
        grid = np.moveaxis(grid.reshape(flipped), list(range(2, len(shape))), list(range(len(shape) - 1, 1, -1)))
    last = np.moveaxis(grid, 1, -1)
    around = np.pad(last, [(0, 0), *[(max(b, 0), max(e, 0)) for b, e in window.pads], (0, 0)])
    taps = np.stack(_taps(around, window))
    chosen = ops.expand_dims(ops.argmax(stacked, axis=0), 0)
    found = ops.take_along_axis(ops.convert_to_tensor(taps), ops.cast(chosen, "int32"), axis=0)
    return node.from_channels_last(ops.cast(ops.squeeze(found, 0), "int64"))
