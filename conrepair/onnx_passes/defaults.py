"""Attributes that nodes leave to the schema, written out for tools that don't look them up there."""

from __future__ import annotations

import onnx
import onnx_ir

__all__ = ["write_defaults"]


def write_defaults(node: onnx_ir.Node, opset: int) -> None:
    """Give a node, in place, the attributes that the schema of its operator has defaults for.

    Args:
        node: Of an operator that has a schema.
        opset: Version of its domain.
    """
    for name, attribute in onnx.defs.get_schema(node.op_type, opset, node.domain).attributes.items():
        if name not in node.attributes and attribute.default_value.type != onnx.AttributeProto.UNDEFINED:
            value = onnx.AttributeProto.FromString(attribute.default_value.SerializeToString())
            value.name = name
            node.attributes.add(onnx_ir.from_proto(value))
