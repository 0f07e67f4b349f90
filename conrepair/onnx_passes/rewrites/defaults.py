"""Every attribute written out that a node leaves to the operator's definition."""

from __future__ import annotations

import onnx
import onnx_ir

from conrepair.onnx_passes.defaults import write_defaults
from conrepair.onnx_passes.explicit_pads import WINDOWED
from conrepair.onnx_passes.infer_shapes import rank_of
from conrepair.onnx_passes.rewrites.building import main_nodes

__all__ = ["defaults"]


def defaults(model: onnx_ir.Model) -> None:
    """Write them in place, strides, dilations and pads of windows too, whose defaults depend on their rank."""
    opset = model.opset_imports.get("", 1)
    for node in model.graph:
        if node.domain in {"", "ai.onnx"}:
            write_defaults(node, opset)
    for node in main_nodes(model, *WINDOWED, "ConvTranspose"):
        rank = rank_of(node.inputs[0])
        automatic = node.attributes.get("auto_pad")
        if rank is None:
            continue
        wanted = {"strides": [1] * (rank - 2), "dilations": [1] * (rank - 2), "pads": [0] * (2 * (rank - 2))}
        known = onnx.defs.get_schema(node.op_type, opset, "").attributes
        if automatic is not None and automatic.as_string() != "NOTSET":
            del wanted["pads"]
        for name, values in wanted.items():
            if name in known and name not in node.attributes:
                node.attributes[name] = onnx_ir.AttrInt64s(name, values)
