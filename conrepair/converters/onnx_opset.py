"""Lower the opset of an ONNX graph where its operators allow it.

The ONNX package's version converter has no way down for many operators, though most differ only in types or
in attributes left at their default. This one compares the two versions of each operator's schema: what the
older one lacks must be at its default (and is dropped), and axes given as a constant input become the
attribute that they were. Anything else is refused by name.
"""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir

from conrepair.runtime.errors import ConversionError

__all__ = ["lower_opset"]

_FLATTENING = {"Hardmax", "LogSoftmax", "Softmax"}


def lower_opset(model: onnx_ir.Model, opset: int) -> None:
    """Rewrite `model` in place to an opset not above the given one.

    Args:
        model: Whose default domain's opset is lowered; left alone when it is low enough.
        opset: The highest that the consumer understands.

    Raises:
        ConversionError: naming the node that the older opset can't express.
    """
    current = model.opset_imports.get("", opset)
    if current <= opset:
        return
    for node in model.graph.all_nodes():
        if node.domain in {"", "ai.onnx"}:
            _lower(node, current, opset)
    model.opset_imports[""] = opset
    model.graph.opset_imports[""] = opset


def _lower(node: onnx_ir.Node, current: int, opset: int) -> None:
    new = onnx.defs.get_schema(node.op_type, current, "")
    try:
        old = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError as error:
        raise _refusal(node, opset, f"the operator came with opset {new.since_version}") from error
    if old.since_version == new.since_version:
        return
    if node.op_type in _FLATTENING and old.since_version < 13 <= new.since_version:
        raise _refusal(node, opset, "before opset 13 the operator joined all dimensions behind its axis")
    for name, attribute in old.attributes.items():
        changed = name in new.attributes and attribute.default_value != new.attributes[name].default_value
        if changed and name not in node.attributes:
            raise _refusal(node, opset, f"attribute {name} had another default")
    for name, attribute in list(node.attributes.items()):
        if name in old.attributes:
            continue
        if not (_is_default(attribute, new.attributes[name]) or _has_no_effect(node, name)):
            raise _refusal(node, opset, f"attribute {name}={attribute.value}")
        del node.attributes[name]
    for index in reversed(range(len(node.inputs))):
        if index < old.max_input:
            break
        _drop_input(node, index, new.inputs[index].name, old, opset)


def _drop_input(node: onnx_ir.Node, index: int, name: str, old: Any, opset: int) -> None:
    value = node.inputs[index]
    if value is not None:
        constant = onnx_ir.convenience.get_const_tensor(value)
        is_list = name in old.attributes and old.attributes[name].type == onnx.defs.OpSchema.AttrType.INTS
        if not is_list or constant is None:
            raise _refusal(node, opset, f"input {name}")
        numbers = [int(number) for number in constant.numpy().reshape(-1)]
        node.attributes[name] = onnx_ir.AttrInt64s(name, numbers)
    node.resize_inputs(index)


def _is_default(attribute: onnx_ir.Attr, schema: Any) -> bool:
    default = schema.default_value
    if default.type == onnx.AttributeProto.UNDEFINED:
        return False
    return bool(attribute.value == onnx_ir.from_proto(default).value)


def _has_no_effect(node: onnx_ir.Node, name: str) -> bool:
    """Reshape's allowzero says what a 0 in the shape means, which a constant shape without 0 doesn't need."""
    if (node.op_type, name) != ("Reshape", "allowzero") or node.inputs[1] is None:
        return False
    shape = onnx_ir.convenience.get_const_tensor(node.inputs[1])
    return shape is not None and bool((shape.numpy() != 0).all())


def _refusal(node: onnx_ir.Node, opset: int, reason: str) -> ConversionError:
    return ConversionError(
        f"{node.op_type} '{node.name}' can't be expressed in opset {opset} ({reason}). "
        "Export the source model with a lower opset, or pin another route (`via`)."
    )
