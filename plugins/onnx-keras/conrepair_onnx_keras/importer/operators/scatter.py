"""Operators that read and write single cells or rows by computed indices.

The axes that are indexed are flattened into one, so that a single index says where: for that, their sizes must be
known, the first one's apart.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.indexing import computed, flat_positions, from_front, positions
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.operators.shape import reshaped_array
from conrepair_onnx_keras.importer.values import known

_OPEN = "unknown sizes of axes that are indexed, the first apart"


@operator()
def gather_elements(node: ImportedNode) -> Any:
    axis, sizes, wanted = node.axis(0), node.shape(0), node.shape(1)
    data, places = node.tensor(0), from_front(node, node.tensor(1), sizes[axis])
    front = tuple(
        slice(None) if place == axis or size == mine else slice(0, int(size))
        for place, (size, mine) in enumerate(zip(wanted, sizes, strict=True))
    )
    data = data if all(part == slice(None) for part in front) else data[front]
    return node.output(ops.take_along_axis(data, places, axis=axis), None, wanted)


@operator(refuses=_OPEN)
def gather_nd(node: ImportedNode) -> Any:
    batch, depth = node.attribute("batch_dims", 0), node.known_shape(1, [node.rank(1) - 1])[0]
    sizes, front = node.shape(0), node.shape(1)[:-1]
    indices = node.tensor(1)
    coordinates = [positions(node, front[axis], axis, len(front)) for axis in range(batch)]
    coordinates += [from_front(node, indices[..., place], sizes[batch + place]) for place in range(depth)]
    flat = flat_positions(coordinates, node.known_shape(0, range(1, batch + depth)))
    rows = _flattened(node, node.tensor(0), batch + depth)
    return node.output(ops.take(rows, flat, axis=0), None, [*front, *sizes[batch + depth :]])


@operator("ScatterElements", "Scatter", refuses=_OPEN)
def scatter_elements(node: ImportedNode) -> Any:
    axis, sizes = node.axis(0), node.shape(0)
    coordinates = [positions(node, size, place, len(sizes)) for place, size in enumerate(node.shape(1))]
    coordinates[axis] = from_front(node, node.tensor(1), sizes[axis])
    return _scattered(node, coordinates, node.tensor(2))


@operator(refuses=_OPEN)
def scatter_nd(node: ImportedNode) -> Any:
    indices = node.tensor(1)
    depth = node.known_shape(1, [node.rank(1) - 1])[0]
    coordinates = [from_front(node, indices[..., place], node.shape(0)[place]) for place in range(depth)]
    return _scattered(node, coordinates, node.tensor(2))


@operator(refuses=_OPEN)
def tensor_scatter(node: ImportedNode) -> Any:
    """Write a stretch of each sample at its own place along an axis, around its end if it's circular."""
    axis, rank = node.axis(-2), node.rank(0)
    coordinates = [positions(node, size, place, rank) for place, size in enumerate(node.shape(1))]
    if node.has(2):
        start = computed("reshape", node.tensor(2), [-1, *[1] * (rank - 1)])
        coordinates[axis] = computed("add", coordinates[axis], start)
    if node.attribute("mode", "linear") == "circular":
        coordinates[axis] = computed("mod", coordinates[axis], node.known_shape(0, [axis])[0])
    return _scattered(node, coordinates, node.tensor(1))


@operator()
def reverse_sequence(node: ImportedNode) -> Any:
    """The first cells along the time axis, as many as each sample's length says, in reverse."""
    time, batch, sizes = node.attribute("time_axis", 0), node.attribute("batch_axis", 1), node.shape(0)
    steps = positions(node, sizes[time], time, len(sizes))
    lengths = computed("reshape", node.tensor(1), [-1 if axis == batch else 1 for axis in range(len(sizes))])
    mirrored = computed("subtract", computed("subtract", lengths, 1), steps)
    chosen = computed("where", computed("less", mirrored, 0), steps, mirrored)
    return node.output(ops.take_along_axis(node.tensor(0), chosen, axis=time), None, sizes)


def _flattened(node: ImportedNode, data: Any, axes: int) -> Any:
    """The data with its first axes made one."""
    sizes = node.shape(0)
    return reshaped_array(node, data, [math.prod(sizes[:axes], start=1), *sizes[axes:]])


def _scattered(node: ImportedNode, coordinates: list[Any], updates: Any) -> Any:
    """The first input with updates written into the cells that the coordinates of its first axes name."""
    sizes, axes = node.shape(0), len(coordinates)
    reduction = node.attribute("reduction", "none")
    flat = computed("reshape", flat_positions(coordinates, node.known_shape(0, range(1, axes))), [-1, 1])
    if not all(map(known, sizes[axes:])):
        node.refuse("the sizes of all axes of data but the first must be known; fix them with --input")
    updates = computed("reshape", updates, [-1, *map(int, sizes[axes:])])
    rows = _flattened(node, node.tensor(0), axes)
    if isinstance(flat, np.ndarray) and reduction == "none" and rows.shape[0] is not None:
        # TFLite has no operator that updates cells, but it joins and gathers.
        chosen = np.arange(rows.shape[0])
        chosen[flat[:, 0]] = rows.shape[0] + np.arange(len(flat))
        written = ops.take(ops.concatenate([rows, updates], axis=0), chosen, axis=0)
        return node.output(reshaped_array(node, written, sizes), None, sizes)
    written = ops.scatter_update(rows, flat, updates, reduction=None if reduction == "none" else reduction)
    return node.output(reshaped_array(node, written, sizes), None, sizes)
