"""A pool whose window is the whole picture, for GlobalAveragePool, GlobalMaxPool and ReduceMean over all of it."""

from __future__ import annotations

import onnx_ir

from conrepair.onnx_passes.infer_shapes import rank_of
from conrepair.onnx_passes.rewrites.building import Builder, attribute, axes_of, main_nodes

__all__ = ["global_pool"]

_POOLS = {"GlobalAveragePool": "AveragePool", "GlobalMaxPool": "MaxPool", "ReduceMean": "AveragePool"}


def global_pool(model: onnx_ir.Model) -> None:
    """Replace in place where the picture's sizes are known."""
    for node in main_nodes(model, *_POOLS):
        source, rank = node.inputs[0], rank_of(node.inputs[0])
        if source is None or source.shape is None or rank not in {4, 5}:
            continue
        kept, begin = True, 2
        if node.op_type == "ReduceMean":
            axes, kept = axes_of(node, rank), bool(attribute(node, "keepdims", 1))
            begin = 1 if axes == list(range(1, rank - 1)) and not kept else 2  # channels last, or first
            if axes != list(range(begin, begin + rank - 2)):
                continue
        sizes = [size for size in source.shape[begin : begin + rank - 2] if isinstance(size, int)]
        if len(sizes) != rank - 2:
            continue
        build = Builder(node)
        if begin == 1:
            source = build.op("Transpose", [source], perm=[0, rank - 1, *range(1, rank - 1)])
        ones = [1] * len(sizes)
        pads = [0] * (2 * len(sizes))
        pooled = build.op(_POOLS[node.op_type], [source], kernel_shape=sizes, strides=ones, pads=pads)
        build.finish(pooled if kept else build.op("Flatten", [pooled], axis=1))
