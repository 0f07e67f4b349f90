"""The root of an averaged square, for LpPool of order 2."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir

from conrepair.onnx_passes.rewrites.building import Builder, attribute, main_nodes

__all__ = ["lp_pool"]


def lp_pool(model: onnx_ir.Model) -> None:
    """Replace in place; other orders are left alone."""
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
