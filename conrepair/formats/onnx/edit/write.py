"""Write what an ONNX operator is told: as an attribute or as a constant input, whichever its opset has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
import onnx
import onnx_ir

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.onnx.edit.file import OnnxFile
from conrepair.ground.graph.layer_graph import Attribute
from conrepair.ground.onnx_graphs.initializers import constant_of

_BIASES = {"B", "C"}  # what ONNX calls inputs that are added to a layer's result
_OPTIONAL = onnx.defs.OpSchema.FormalParameterOption.Optional
_Kinds = onnx_ir.AttributeType
_CONVERSIONS: Mapping[onnx_ir.AttributeType, Callable[[Any], Any]] = {
    _Kinds.INT: int,
    _Kinds.FLOAT: float,
    _Kinds.STRING: str,
    _Kinds.INTS: lambda value: [int(item) for item in value],
    _Kinds.FLOATS: lambda value: [float(item) for item in value],
    _Kinds.STRINGS: lambda value: [str(item) for item in value],
}


def knows(file: OnnxFile, node: onnx_ir.Node, name: str) -> bool:
    """Whether a node's operator has an attribute or an input of a name."""
    schema = file.schema(node)
    has = schema is not None and (name in schema.attributes or any(item.name == name for item in schema.inputs))
    return has or name in node.attributes


def write(file: OnnxFile, node: onnx_ir.Node, name: str, value: Attribute) -> None:
    """Set what ONNX calls `name`, in place.

    Args:
        file: Of the node.
        node: Which.
        name: Of an attribute or an input.
        value: In ONNX's convention; None to leave it out.

    Raises:
        NotEditableError: if the operator has neither in this opset.
    """
    schema = file.schema(node)
    if name in node.attributes or (schema is not None and name in schema.attributes):
        _write_attribute(file, node, name, value)
        return
    names = [] if schema is None else [item.name for item in schema.inputs]
    if name not in names:
        _refuse(file, node, f"no {name}")
    index = names.index(name)
    if value is None:
        set_input(file, node, index, None)
    else:
        write_input(file, node, index, value)


def bias_place(file: OnnxFile, node: onnx_ir.Node) -> int | None:
    """Where a node can read a bias that it may do without; none of integers, which are in steps of scales."""
    schema = file.schema(node)
    inputs = [] if schema is None else list(schema.inputs)
    found = (
        place
        for place, item in enumerate(inputs)
        if item.name in _BIASES and item.option == _OPTIONAL and item.type_str == inputs[0].type_str
    )
    return next(found, None)


def set_input(file: OnnxFile, node: onnx_ir.Node, index: int, value: onnx_ir.Value | None) -> None:
    """Let a node read another value, or none, in place."""
    old = node.inputs[index] if index < len(node.inputs) else None
    if value is not None and index >= len(node.inputs):
        node.resize_inputs(index + 1)
    if index < len(node.inputs):
        node.replace_input_with(index, value)
    while node.inputs and node.inputs[-1] is None:
        node.resize_inputs(len(node.inputs) - 1)
    file.forget(old)


def become(file: OnnxFile, node: onnx_ir.Node, operator: str) -> None:
    """Make a node another of ONNX's operators, without attributes, in place.

    Raises:
        NotEditableError: if the model's opset doesn't have it.
    """
    opset = file.model.opset_imports.get("", 1)
    try:
        onnx.defs.get_schema(operator, opset, "")
    except onnx.defs.SchemaError:
        raise NotEditableError(
            f"{node.name or node.op_type} can't be {operator}: opset {opset} of the file doesn't have it."
        ) from None
    node.op_type, node.domain, node.overload = operator, "", ""
    node.attributes.clear()


def check_operands(file: OnnxFile, node: onnx_ir.Node) -> None:
    """Refuse a node that reads fewer or more operands than its operator takes."""
    schema, count = file.schema(node), len(node.inputs)
    if not schema.min_input <= count <= schema.max_input:
        raise NotEditableError(
            f"{node.name or node.outputs[0].name} has {count} operands, {node.op_type} takes {schema.min_input} to "
            f"{schema.max_input}. Insert and remove nodes instead."
        )


def check_required(file: OnnxFile, node: onnx_ir.Node) -> None:
    """Refuse a node without an attribute that its operator must have."""
    attributes = file.schema(node).attributes
    missing = [name for name, item in attributes.items() if item.required and name not in node.attributes]
    if missing:
        called = node.name or node.outputs[0].name
        raise NotEditableError(f"{called} as {node.op_type} needs {', '.join(missing)}; say what they are.")


def _write_attribute(file: OnnxFile, node: onnx_ir.Node, name: str, value: Attribute) -> None:
    if value is None:
        node.attributes.pop(name, None)
        return
    schema = file.schema(node)
    known = schema is not None and name in schema.attributes
    kind = _Kinds(schema.attributes[name].type.value) if known else node.attributes[name].type
    if kind == _Kinds.TENSOR and name in node.attributes and not isinstance(value, tuple | str):
        tensor = node.attributes[name].as_tensor()
        array = np.full(tensor.shape.numpy(), value, tensor.dtype.numpy())
        node.attributes[name] = onnx_ir.AttrTensor(name, onnx_ir.Tensor(array, dtype=tensor.dtype, name=tensor.name))
    elif kind in _CONVERSIONS:
        try:
            node.attributes[name] = onnx_ir.Attr(name, kind, _CONVERSIONS[kind](value))
        except (TypeError, ValueError):
            _refuse(file, node, f"no {name} of {value}: it is {kind.name.lower()}")
    else:
        _refuse(file, node, f"no {name} of {value}")


def write_input(file: OnnxFile, node: onnx_ir.Node, index: int, value: Any) -> None:
    """Let a node read a constant of its own at an input, in place, of the type that the operator wants there."""
    old = node.inputs[index] if index < len(node.inputs) else None
    before = constant_of(old)
    array = np.asarray(value)
    if before is not None and before.size == array.size == 1:
        array = array.reshape(before.shape)
    label = f"{node.name or node.outputs[0].name}/{file.schema(node).inputs[index].name}"
    set_input(file, node, index, file.constant(label, array, _type_of(file, node, index)))


def _type_of(file: OnnxFile, node: onnx_ir.Node, index: int) -> onnx_ir.DataType:
    """The element type of an input: what it was, what the operator says, or what its data is of."""
    old = file.dtype(node.inputs[index]) if index < len(node.inputs) else None
    formal = file.schema(node).inputs
    data = file.dtype(node.inputs[0])
    if old is not None:
        return old
    if formal[index].type_str == formal[0].type_str and data is not None:
        return data
    return onnx_ir.DataType.FLOAT if formal[index].type_str == "tensor(float)" else onnx_ir.DataType.INT64


def _refuse(file: OnnxFile, node: onnx_ir.Node, what: str) -> NoReturn:
    raise NotEditableError(f"{node.name or node.op_type}: {node.op_type} of opset {file.opset(node)} has {what}.")
