"""Operators that read an image between its cells: at the places of a grid, in regions, around shifted taps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from keras import ops

from conrepair.formats.converters.interpolation import far, near
from conrepair_onnx_keras.importer.indexing import add, computed, flat_positions, positions
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.operators.shape import reshaped_array
from conrepair_onnx_keras.importer.values import Array
from conrepair_onnx_keras.importer.window import window_of

Taps = list[tuple[Any, Any]]
"""Along one axis: cells (whole numbers, any float type), and what each weighs (None: 1)."""

_A = -0.75
_MODES = {"bilinear": "linear", "bicubic": "cubic"}


@operator(refuses="images of unknown size")
def grid_sample(node: ImportedNode) -> Any:
    rank, sizes = node.rank(0), node.known_shape(0, range(2, node.rank(0)))
    mode, align = node.attribute("mode", "linear"), bool(node.attribute("align_corners", 0))
    mode, padding = _MODES.get(mode, mode), node.attribute("padding_mode", "zeros")
    rows = _rows(node)
    grid = _computed(node, 1)
    grid = (
        grid if node.dtype(1) == "float64" else ops.cast(grid, "float32")
    )  # half precision is too coarse for places
    taps = []
    for axis, size in enumerate(sizes):
        share = add(grid[..., len(sizes) - 1 - axis], 1.0)  # the grid names the last axis first
        if align:
            where = ops.multiply(share, (size - 1) / 2)
        else:
            where = ops.divide(ops.subtract(ops.multiply(share, float(size)), 1.0), 2.0)
        taps.append(_padded(_taps(_inside(where, size, align, padding, mode), mode), size, align, padding))
    sample = positions(node, node.shape(0)[0], 0, rank - 1)
    y = reduce(add, _read(rows, sample, taps, sizes))
    return node.from_channels_last(y, [*node.shape(0)[:2], *node.shape(1)[1:-1]])


def _computed(node: ImportedNode, index: int) -> Any:
    return node.stored(node.computed(node.value(index)))


def _inside(where: Any, size: int, align: bool, padding: str, mode: str) -> Any:
    """Places outside the image moved into it."""
    where = ops.round(where) if mode == "nearest" else where
    if padding == "border" and mode != "cubic":  # of the cubic kernel each tap is moved by itself, as in PyTorch
        return ops.clip(where, 0.0, float(size - 1))
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    return _reflected(where, low, high) if padding == "reflection" else where


def _taps(where: Any, mode: str) -> Taps:
    if mode == "nearest":
        return [(ops.round(where), None)]
    return _linear_taps(where) if mode == "linear" else _cubic_taps(where)


def _padded(taps: Taps, size: int, align: bool, padding: str) -> Taps:
    """Cells outside the image: they weigh nothing, or are mirrored; `_read` clips the rest."""
    if padding == "zeros":
        return [(cell, _counted(cell, weight, size)) for cell, weight in taps]
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        return [(ops.round(_reflected(cell, low, high)), weight) for cell, weight in taps]
    return taps


def _counted(cell: Any, weight: Any, size: int) -> Any:
    inside = ops.cast(ops.logical_and(ops.greater_equal(cell, 0.0), ops.less(cell, float(size))), cell.dtype)
    return inside if weight is None else ops.multiply(weight, inside)


@operator(refuses="sampling_ratio=0, images of unknown size")
def roi_align(node: ImportedNode) -> Any:
    ratio = node.attribute("sampling_ratio", 0)
    if ratio == 0:
        node.refuse("with sampling_ratio=0 the number of samples depends on the regions' sizes")
    sizes = node.known_shape(0, [2, 3])
    bins = node.attribute("output_height", 1), node.attribute("output_width", 1)
    rows = _rows(node)
    regions = ops.multiply(_computed(node, 1), node.attribute("spatial_scale", 1.0))
    half = node.opset >= 16 and node.attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    regions = ops.subtract(regions, 0.5) if half else regions
    taps = [_region_taps(regions, axis, bins[axis], ratio, sizes[axis], half) for axis in (0, 1)]
    sample = computed("reshape", node.tensor(2), [-1, 1, 1])
    values = _read(rows, sample, taps, sizes)
    mean = node.attribute("mode", "avg") == "avg"
    y = reduce(add if mean else ops.maximum, values)
    channels = node.known_shape(0, [1])[0]
    y = ops.reshape(y, [-1, bins[0], ratio, bins[1], ratio, channels])
    y = (ops.mean if mean else ops.max)(y, axis=(2, 4))
    return node.from_channels_last(y, [node.shape(1)[0], channels, *bins])


def _region_taps(regions: Any, axis: int, bins: int, ratio: int, size: int, half: bool) -> Taps:
    """Taps along one axis, of shape [regions, bins * ratio, 1] or [regions, 1, bins * ratio]."""
    start, end = regions[:, 1 - axis], regions[:, 3 - axis]
    width = ops.subtract(end, start)
    width = width if half else ops.maximum(width, 1.0)
    shares = ((np.arange(bins * ratio) + 0.5) / (bins * ratio)).astype(np.float32)
    shape = [1, -1, 1] if axis == 0 else [1, 1, -1]
    where = ops.multiply(ops.reshape(width, [-1, 1, 1]), shares.reshape(shape).astype(str(width.dtype)))
    where = add(where, ops.reshape(start, [-1, 1, 1]))
    near = ops.cast(ops.logical_and(ops.greater_equal(where, -1.0), ops.less_equal(where, float(size))), where.dtype)
    taps = _linear_taps(ops.clip(where, 0.0, float(size - 1)))
    return [(cell, ops.multiply(weight, near)) for cell, weight in taps]


@operator(
    constant=("W", "B"), ignores=("kernel_shape",), refuses="more or fewer than two spatial axes, unknown sizes"
)
def deform_conv(node: ImportedNode) -> Any:
    """Every tap of the kernel reads at its place plus an offset, times a mask; the rest is a matrix product."""
    kernel = node.constant(1)
    if kernel.ndim != 4:
        node.refuse("it is done for images of two axes")
    filters, depth, *extent = kernel.shape
    count, channels = math.prod(extent), node.known_shape(0, [1])[0]
    groups, shifted = node.attribute("group", 1), node.attribute("offset_group", 1)
    rows = ops.reshape(_rows(node), [-1, channels // shifted])  # [samples * cells * offset groups, channels]
    height, width = node.known_shape(2, [2, 3])
    offset = ops.reshape(_computed(node, 2), [-1, shifted, count, 2, height, width])
    grids = [add(offset[:, :, :, axis], grid) for axis, grid in enumerate(_tap_grid(node, extent, height, width))]
    taps = [
        [(cell, _counted(cell, weight, size)) for cell, weight in _linear_taps(where)]
        for where, size in zip(grids, node.known_shape(0, [2, 3]), strict=True)
    ]
    group: Taps = [(np.arange(shifted, dtype=np.float32).reshape(1, -1, 1, 1, 1), None)]
    sample = positions(node, node.shape(0)[0], 0, 5)
    y = reduce(add, _read(rows, sample, [*taps, group], [*node.known_shape(0, [2, 3]), shifted]))
    if node.has(4):
        mask = ops.reshape(_computed(node, 4), [-1, shifted, count, height, width])
        y = ops.multiply(y, ops.expand_dims(mask, -1))  # [samples, offset groups, taps, height, width, channels]
    y = ops.reshape(ops.transpose(y, (0, 3, 4, 1, 5, 2)), [-1, height, width, groups, depth * count])
    weights = kernel.reshape(groups, filters // groups, depth * count)
    y = ops.reshape(ops.einsum("nhwgk,gfk->nhwgf", y, weights), [-1, height, width, filters])
    y = add(y, node.constant(3)) if node.has(3) else y
    return node.from_channels_last(y, [node.shape(0)[0], filters, height, width])


def _tap_grid(node: ImportedNode, extent: list[int], height: int, width: int) -> list[Array]:
    """Where each tap would read without offsets: rows and columns, each [taps, height, width]."""
    window = window_of(node, extent)
    places = np.meshgrid(*map(np.arange, extent), indexing="ij")
    grids = []
    for axis, length in enumerate((height, width)):
        tap = places[axis].reshape(-1, 1, 1) * window.dilations[axis] - window.pads[axis][0]
        cells = (np.arange(length) * window.strides[axis]).reshape((1, -1, 1) if axis == 0 else (1, 1, -1))
        grids.append(np.broadcast_to(tap + cells, (tap.size, height, width)).astype(node.dtype(2)))
    return grids


def _rows(node: ImportedNode) -> Any:
    """The image [N, C, spatial...] as [N * cells, C]."""
    channels, *sizes = node.known_shape(0, range(1, node.rank(0)))
    return reshaped_array(node, node.channels_last(0), [node.shape(0)[0] * math.prod(sizes), channels])


# Cells at computed places.


def _linear_taps(where: Any) -> Taps:
    """The two cells around a place."""
    below = ops.floor(where)
    rest = ops.subtract(where, below)
    return [(below, ops.subtract(1.0, rest)), (add(below, 1.0), rest)]


def _cubic_taps(where: Any) -> Taps:
    """The four cells around a place, weighted by Keys's kernel with a = -0.75."""
    below = ops.floor(where)
    rest = ops.subtract(where, below)
    distances = [add(rest, 1.0), rest, ops.subtract(1.0, rest), ops.subtract(2.0, rest)]
    weights = [kernel(distance, _A) for kernel, distance in zip((far, near, near, far), distances, strict=True)]
    return [(add(below, float(step)), weight) for step, weight in zip((-1, 0, 1, 2), weights, strict=True)]


def _reflected(where: Any, low: float, high: float) -> Any:
    """Places mirrored at both borders until they lie between them."""
    width = high - low
    if width == 0:
        return ops.full_like(where, low)
    folded = ops.mod(ops.absolute(ops.subtract(where, low)), 2 * width)
    return add(ops.subtract(width, ops.absolute(ops.subtract(folded, width))), low)


def _read(rows: Any, sample: Any, taps: Sequence[Taps], sizes: Sequence[int]) -> list[Any]:
    """For each combination of taps, what the image has there times the weight.

    Args:
        rows: [samples * cells, channels]: the images, flattened.
        sample: Which image is read (int64), broadcast with the taps.
        taps: For each spatial axis. Cells outside the image are clipped; what they weigh is the caller's matter.
        sizes: Of the spatial axes.

    Returns:
        Tensors of the taps' shape with an axis of channels behind.
    """
    values = []
    for combination in itertools.product(*taps):
        cells = [
            cell.astype(np.int64) if isinstance(cell, np.ndarray) else _clipped(cell, size)
            for (cell, _), size in zip(combination, sizes, strict=True)
        ]
        found = ops.take(rows, flat_positions([sample, *cells], sizes), axis=0)
        weights = [weight for _, weight in combination if weight is not None]
        if weights:
            weight = ops.cast(ops.expand_dims(reduce(ops.multiply, weights), -1), found.dtype)
            found = ops.multiply(found, weight)
        values.append(found)
    return values


def _clipped(cell: Any, size: int) -> Any:
    return ops.cast(ops.clip(cell, 0.0, float(size - 1)), "int64")
