"""Reshape and Transpose for DepthToSpace and SpaceToDepth."""

from __future__ import annotations

import onnx_ir

from conrepair.onnx_passes.defaults import attribute
from conrepair.onnx_passes.rewrites.building import Builder, main_nodes

__all__ = ["depth_to_space"]


def depth_to_space(model: onnx_ir.Model) -> None:
    """Replace in place where channels and the picture's sizes are known."""
    for node in main_nodes(model, "DepthToSpace", "SpaceToDepth"):
        source = node.inputs[0]
        if source is None or source.shape is None or len(source.shape) != 4:
            continue
        sizes = [size for size in source.shape[1:] if isinstance(size, int)]
        if len(sizes) != 3:
            continue
        block, (depth, height, width) = attribute(node, "blocksize", 1), sizes
        if node.op_type == "SpaceToDepth":
            split = [-1, depth, height // block, block, width // block, block]
            order, joined = [0, 3, 5, 1, 2, 4], [-1, depth * block**2, height // block, width // block]
        elif attribute(node, "mode", "DCR") == "DCR":
            split = [-1, block, block, depth // block**2, height, width]
            order, joined = [0, 3, 4, 1, 5, 2], [-1, depth // block**2, height * block, width * block]
        else:
            split = [-1, depth // block**2, block, block, height, width]
            order, joined = [0, 1, 4, 2, 5, 3], [-1, depth // block**2, height * block, width * block]
        build = Builder(node)
        apart = build.op("Reshape", [source, build.constant(split)])
        turned = build.op("Transpose", [apart], perm=order)
        build.finish(build.op("Reshape", [turned, build.constant(joined)]))
