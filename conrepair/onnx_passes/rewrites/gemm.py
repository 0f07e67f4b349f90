"""Gemm for MatMul with a constant matrix, and for the addition of a bias behind it."""

from __future__ import annotations

import math

import onnx_ir

from conrepair.onnx_passes.defaults import attribute
from conrepair.onnx_passes.infer_shapes import rank_of
from conrepair.onnx_passes.initializers import constant_of
from conrepair.onnx_passes.rewrites.building import Builder, axes_of, main_nodes, only_use

__all__ = ["flatten", "gemm"]


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
