"""Raise an ONNX file's opset in place, where all its operators mean the same in the later one."""

from __future__ import annotations

import onnx
import onnx_ir

from conrepair.editors.onnx_file import OnnxFile
from conrepair.networks.onnx_schema import first_with, meaning_kept, usual_attributes

__all__ = ["raise_for"]


def raise_for(file: OnnxFile, node: onnx_ir.Node, name: str) -> bool:
    """Let a file have the first opset in which a node's operator has an attribute.

    What later opsets take for granted where this one has no word for it is written out where it's something else.

    Args:
        file: Is changed in place, its nodes stay.
        node: Of ONNX's own domain.
        name: Of the attribute.

    Returns:
        False where there's none, or an operator means something else there.
    """
    now = file.opset(node)
    wanted = None if node.domain else first_with(node, name, now)
    if wanted is None:
        return False
    mine = [item for item in file.graph.all_nodes() if not item.domain]
    if not all(meaning_kept(item, now, wanted) for item in mine):
        return False
    for item in mine:
        before, behind = (usual_attributes(item, opset) for opset in (now, wanted))
        for other, value in behind.items():
            if other not in item.attributes and before.get(other, value) != value:
                attribute = onnx.helper.make_attribute(other, before[other])
                item.attributes.add(onnx_ir.from_proto(attribute))
    file.model.opset_imports[""] = wanted
    file.graph.opset_imports[""] = wanted
    least = onnx.helper.OP_SET_ID_VERSION_MAP.get(("ai.onnx", wanted), file.model.ir_version)
    file.model.ir_version = max(file.model.ir_version, least)
    return True
