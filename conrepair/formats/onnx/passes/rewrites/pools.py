"""A Pad in front of pools, for converters that read no padding, or none on one side only."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir

from conrepair.ground.onnx_graphs.building import Builder, axes_of, main_nodes
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.infer_shapes import rank_of

# A pool whose window is the whole picture, for GlobalAveragePool, GlobalMaxPool and ReduceMean over all of it.

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


# The root of an averaged square, for LpPool of order 2.


def lp_pool(model: onnx_ir.Model) -> None:
    """Replace LpPool nodes in place; other orders are left alone."""
    for node in main_nodes(model, "LpPool"):
        source = node.inputs[0]
        if source is None or source.dtype != onnx_ir.DataType.FLOAT or attribute(node, "p", 2) != 2:
            continue
        if attribute(node, "auto_pad", "NOTSET") != "NOTSET" or attribute(node, "ceil_mode", 0):
            continue
        kernel = list(attribute(node, "kernel_shape", []))
        kept = {
            name: item.value for name, item in node.attributes.items() if name in {"kernel_shape", "strides", "pads"}
        }
        if any(step != 1 for step in attribute(node, "dilations", [])):
            continue
        build = Builder(node)
        mean = build.op("AveragePool", [build.op("Mul", [source, source])], **kept, count_include_pad=1)
        total = build.op("Mul", [mean, build.constant(math.prod(kernel), np.float32)])
        build.finish(build.op("Sqrt", [total]))


def pool_padding(model: onnx_ir.Model) -> None:
    """Replace nodes in place; an AveragePool that doesn't count its padding is divided by the number of elements."""
    for node in main_nodes(model, "MaxPool", "AveragePool"):
        pads = list(attribute(node, "pads", []))
        if not any(pads) or len(node.outputs) > 1 or attribute(node, "ceil_mode", 0):
            continue
        if attribute(node, "auto_pad", "NOTSET") != "NOTSET" or model.opset_imports.get("", 1) < 11:
            continue
        half = len(pads) // 2
        full = [0, 0, *pads[:half], 0, 0, *pads[half:]]
        kept = {name: item.value for name, item in node.attributes.items() if name in _KEPT} | {
            "pads": [0] * len(pads)
        }
        source = node.inputs[0]
        if source is None or source.dtype != onnx_ir.DataType.FLOAT:
            continue
        counted = bool(attribute(node, "count_include_pad", 0))
        sizes = _sizes(source, half)
        if node.op_type == "AveragePool" and not counted and sizes is None:
            continue
        build = Builder(node)
        outside = -np.inf if node.op_type == "MaxPool" else 0.0
        padded = build.op("Pad", [source, build.constant(full), build.constant(outside, np.float32)])
        result = build.op(node.op_type, [padded], **kept)
        if node.op_type == "AveragePool" and not counted:
            ones = build.constant(np.ones([1, 1, *(sizes or [])]), np.float32)
            frame = build.op("Pad", [ones, build.constant(full), build.constant(0.0, np.float32)])
            result = build.op("Div", [result, build.op("AveragePool", [frame], **kept)])
        build.finish(result)


_KEPT = {"kernel_shape", "strides", "dilations"}


def _sizes(source: onnx_ir.Value, axes: int) -> list[int] | None:
    """Of the picture; None where one isn't known."""
    if source.shape is None or len(source.shape) != axes + 2:
        return None
    sizes = [size for size in source.shape[2:] if isinstance(size, int)]
    return sizes if len(sizes) == axes else None
