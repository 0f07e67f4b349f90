"""A Pad in front of pools, for converters that read no padding, or none on one side only."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.onnx_passes.rewrites.building import Builder, attribute, main_nodes

__all__ = ["pool_padding"]


def pool_padding(model: onnx_ir.Model) -> None:
    """Replace in place; an AveragePool that doesn't count its padding is divided by how much it sees."""
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
