"""Operators that put an image together from patches or from pooled cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.node import ImportedNode
from conrepair_onnx_keras.importer.rules import operator
from conrepair_onnx_keras.importer.values import Array


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
