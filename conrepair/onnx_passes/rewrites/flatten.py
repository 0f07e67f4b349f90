"""Flatten for what joins all axes behind the first; Reshape for the Flatten that does something else."""

from __future__ import annotations

import math

import onnx_ir

from conrepair.onnx_passes.infer_shapes import rank_of
from conrepair.onnx_passes.rewrites.building import Builder, attribute, axes_of, constant_of, main_nodes

__all__ = ["flatten"]


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
