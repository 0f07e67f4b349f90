"""Gemm for products with a constant matrix and a bias behind them, BatchNormalization for constants of channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir

from conrepair.ground.onnx_graphs.building import Builder, axes_of, main_nodes, only_use
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.infer_shapes import rank_of
from conrepair.ground.onnx_graphs.initializers import constant_of

# Flatten for what joins all axes behind the first; Reshape for the Flatten that does something else.


def flatten(model: onnx_ir.Model) -> None:
    """Replace in place where sizes show that nothing else is done."""
    for node in main_nodes(model, "Squeeze", "Reshape"):
        if _joins(node):
            build = Builder(node)
            build.finish(build.op("Flatten", [node.inputs[0]], axis=1))
    for node in main_nodes(model, "Flatten"):
        if attribute(node, "axis", 1) == 0:
            build = Builder(node)
            build.finish(build.op("Reshape", [node.inputs[0], build.constant([1, -1])]))


def _joins(node: onnx_ir.Node) -> bool:
    """Whether the result is [first size, all others]."""
    source = node.inputs[0]
    rank = rank_of(source)
    if source is None or source.shape is None or rank is None or rank < 3:
        return False
    behind = [size for size in source.shape[1:] if isinstance(size, int)]
    if node.op_type == "Squeeze":
        axes = axes_of(node, rank)
        ones = axes is not None and all(source.shape[axis] == 1 for axis in axes)
        return bool(ones and axes is not None and 0 not in axes and len(axes) == rank - 2)
    target = constant_of(node.inputs[1])
    if target is None or len(target) != 2 or len(behind) != rank - 1:
        return False
    first, second = (int(size) for size in target)
    whole = math.prod(behind)
    return (second == whole and first in {-1, 0, source.shape[0]}) or (second == -1 and first in {0, source.shape[0]})


def gemm(model: onnx_ir.Model) -> None:
    """Replace in place what multiplies rows by a constant matrix."""
    for product in main_nodes(model, "MatMul"):
        matrix = constant_of(product.inputs[1])
        if matrix is None or matrix.ndim != 2 or rank_of(product.inputs[0]) != 2:
            continue
        addition = _bias_behind(product, matrix.shape[1])
        if addition is None:
            build = Builder(product)
            build.finish(build.op("Gemm", product.inputs))
            continue
        bias = next(value for value in addition.inputs if value is not product.outputs[0])
        numbers = constant_of(bias)
        build = Builder(addition)
        offset = bias if numbers is None else build.constant(numbers.reshape(-1), numbers.dtype)
        build.finish(build.op("Gemm", [*product.inputs, offset]), product)


def _bias_behind(product: onnx_ir.Node, columns: int) -> onnx_ir.Node | None:
    """The Add of a constant row that alone reads a product."""
    node = only_use(product.outputs[0])
    if node is None or node.op_type != "Add" or node.domain or node.graph is not product.graph:
        return None
    other = [constant_of(value) for value in node.inputs if value is not product.outputs[0]]
    if len(other) != 1 or other[0] is None or other[0].size != columns or other[0].shape[-1:] != (columns,):
        return None
    return node


# BatchNormalization for the product with, and the sum of, one constant for each channel.

_OPERATORS = ("Mul", "Add", "Sub", "Div")


def affine(model: onnx_ir.Model) -> None:
    """Replace in place; a product and the sum behind it become one node."""
    for node in main_nodes(model, *_OPERATORS):
        if node.graph is None:
            continue  # joined with the one before
        found = _operand(node)
        if found is None:
            continue
        value, scale, shift = found
        last, joined = node, []
        behind = only_use(node.outputs[0])
        more = None if behind is None or behind.graph is not node.graph else _operand(behind)
        if behind is not None and more is not None and more[0] is node.outputs[0]:
            scale, shift = scale * more[1], shift * more[1] + more[2]
            last, joined = behind, [node]
        channels = max(scale.size, shift.size)
        build = Builder(last)
        parts = [
            build.constant(np.broadcast_to(part, (channels,)), scale.dtype)
            for part in (scale, shift, np.zeros(1), np.ones(1))
        ]
        build.finish(build.op("BatchNormalization", [value, *parts], epsilon=0.0), *joined)


def _operand(node: onnx_ir.Node) -> tuple[onnx_ir.Value, npt.NDArray[Any], npt.NDArray[Any]] | None:
    """What a node scales and shifts by constants of its channels."""
    if node.op_type not in _OPERATORS or node.domain or len(node.inputs) != 2:
        return None
    arrays = [constant_of(value) for value in node.inputs]
    place = next((place for place, array in enumerate(arrays) if array is not None), None)
    if place is None or arrays[1 - place] is not None or (place == 0 and node.op_type in {"Sub", "Div"}):
        return None
    value, array = node.inputs[1 - place], arrays[place]
    rank = rank_of(value)
    if value is None or array is None or array.dtype.kind != "f" or rank is None or rank < 3:
        return None
    if not isinstance(value.shape[1] if value.shape else None, int):
        return None
    channels = int(value.shape[1])  # type: ignore[index,arg-type]
    full = (1,) * (rank - array.ndim) + array.shape
    if len(full) != rank or array.size not in {1, channels} or (array.size > 1 and full[1] != channels):
        return None
    numbers = np.broadcast_to(array.reshape(-1), (channels,))
    one, zero = np.ones_like(numbers), np.zeros_like(numbers)
    match node.op_type:
        case "Mul":
            return value, numbers, zero
        case "Div":
            return value, one / numbers, zero
        case "Add":
            return value, one, numbers
        case _:
            return value, one, -numbers
