"""A comparison with a row of numbers, for OneHot and Hardmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir

from conrepair.onnx_passes.defaults import attribute
from conrepair.onnx_passes.infer_shapes import rank_of
from conrepair.onnx_passes.initializers import constant_of
from conrepair.onnx_passes.rewrites.building import Builder, main_nodes

__all__ = ["one_hot"]

_HARDMAX = 13  # opset from which on Hardmax looks at its axis alone


def one_hot(model: onnx_ir.Model) -> None:
    """Replace in place where the number of classes, and the two values, are constants."""
    for node in main_nodes(model, "OneHot"):
        _one_hot(node)
    if model.opset_imports.get("", 1) >= _HARDMAX:
        for node in main_nodes(model, "Hardmax"):
            _hardmax(node)


def _one_hot(node: onnx_ir.Node) -> None:
    indices, depth, values = node.inputs[0], constant_of(node.inputs[1]), constant_of(node.inputs[2])
    rank = rank_of(indices)
    if indices is None or depth is None or values is None or rank is None or indices.dtype not in _INDICES:
        return
    count, axis = int(depth.reshape(-1)[0]), int(attribute(node, "axis", -1)) % (rank + 1)
    build, kind = Builder(node), indices.dtype.numpy()
    size = build.constant(count, kind)
    # Indices from -count on count from the end; others are nowhere.
    below = build.op("Less", [indices, build.constant(0, kind)])
    wrapped = build.op("Where", [below, build.op("Add", [indices, size]), indices])
    behind = build.op("Unsqueeze", [wrapped, build.constant([axis])])
    build.finish(_compared(build, behind, count, axis, rank + 1, kind, values))


_INDICES = {onnx_ir.DataType.INT32, onnx_ir.DataType.INT64}


def _hardmax(node: onnx_ir.Node) -> None:
    source = node.inputs[0]
    rank = rank_of(source)
    if source is None or source.shape is None or rank is None or source.dtype is None:
        return
    axis = int(attribute(node, "axis", -1)) % rank
    count = source.shape[axis]
    if not isinstance(count, int):
        return
    build = Builder(node)
    best = build.op("ArgMax", [source], axis=axis, keepdims=1)
    values = np.array([0, 1], source.dtype.numpy())
    build.finish(_compared(build, best, count, axis, rank, np.int64, values))


def _compared(
    build: Builder, indices: onnx_ir.Value, count: int, axis: int, rank: int, kind: Any, values: Any
) -> onnx_ir.Value:
    shape = [count if place == axis else 1 for place in range(rank)]
    row = build.constant(np.arange(count).reshape(shape), kind)
    off, on = (build.constant(value, values.dtype) for value in values)
    return build.op("Where", [build.op("Equal", [indices, row]), on, off])
