"""Schemas of nodes' operators, and attributes: what nodes say, and what they leave to the schema."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir

STANDARD = {(str(schema.domain), str(schema.name)) for schema in onnx.defs.get_all_schemas()}
"""Domains and names of ONNX's operators."""

_CALLED = {name.lower(): name for domain, name in STANDARD if not domain}


def attribute(node: onnx_ir.Node, name: str, usual: Any = None) -> Any:
    """The value of an attribute as Python has it, or what holds without it."""
    found = node.attributes.get(name)
    return usual if found is None else found.value


def operator_called(name: str) -> str:
    """The operator that a function of Python is called like: DepthToSpace for `depth_to_space`."""
    return _CALLED[name.replace("_", "")]


def schema_of(node: onnx_ir.Node, opset: int) -> Any:
    """The schema of a node's operator; None for an operator that isn't ONNX's."""
    try:
        return onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None


def defaults_of(node: onnx_ir.Node, opset: int) -> dict[str, onnx_ir.Attr]:
    """The attributes that a node leaves to the schema of its operator, as far as that has defaults.

    Args:
        node: Of an operator that has a schema.
        opset: Version of its domain.
    """
    found = {}
    for name, known in onnx.defs.get_schema(node.op_type, opset, node.domain).attributes.items():
        if name not in node.attributes and known.default_value.type != onnx.AttributeProto.UNDEFINED:
            value = onnx.AttributeProto.FromString(known.default_value.SerializeToString())
            value.name = name
            found[name] = onnx_ir.from_proto(value)
    return found


def write_defaults(node: onnx_ir.Node, opset: int) -> None:
    """Give a node, in place, the attributes that the schema of its operator has defaults for.

    Args:
        node: Of an operator that has a schema.
        opset: Version of its domain.
    """
    node.attributes.update(defaults_of(node, opset))
