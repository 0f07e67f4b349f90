"""Operators that are newer than a file's opset, in the words of that opset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
import onnx_ir

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.onnx.edit.file import OnnxFile, set_inputs
from conrepair.formats.onnx.passes.lower_opset import lower_opset
from conrepair.ground.runtime.errors import ConversionError

_IR_VERSION = 10  # of the model in which an operator is expanded; any that knows functions does


def is_newer(file: OnnxFile, operator: str) -> bool:
    """Whether ONNX has an operator, but not yet in the file's opset."""
    return onnx.defs.has(operator) and not onnx.defs.has(operator, file.model.opset_imports.get("", 1), "")


def expand(file: OnnxFile, node: onnx_ir.Node, operator: str, attributes: Mapping[str, Any]) -> list[onnx_ir.Node]:
    """Make a node, in place, the last one of those that compute a newer operator of its first input.

    Args:
        file: Of the node.
        node: Its name and results stay.
        operator: What ONNX calls it; of one operand.
        attributes: In ONNX's convention.

    Returns:
        The nodes in front, which no graph has yet.

    Raises:
        NotEditableError: if the file's opset has no words for it.
    """
    source, opset = node.inputs[0], file.model.opset_imports.get("", 1)
    dtype = file.dtype(source)
    try:
        if dtype is None:
            raise ConversionError("the type of its input isn't known")
        body = _alone(operator, attributes, dtype)
        lower_opset(body, opset)
    except (ConversionError, ValueError) as error:
        raise NotEditableError(
            f"{node.name} can't be {operator}: opset {opset} of the file doesn't have it, and {error}. "
            "Raise the file's opset first."
        ) from error
    formal, label = body.graph.inputs[0], node.name or node.op_type
    known = {formal: source}
    for value in list(body.graph.initializers.values()):
        tensor = value.const_value
        if tensor is not None:
            known[value] = file.constant(f"{label}/{value.name}", tensor.numpy(), tensor.dtype)
    *front, last = _taken(body.graph)
    for item in [*front, last]:
        set_inputs(item, [None if read is None else known.get(read, read) for read in item.inputs])
    for item in front:
        item.name = file.free(f"{label}/{item.op_type}")
        item.outputs[0].name = file.free(f"{item.name}/result")
    node.op_type, node.domain, node.overload = last.op_type, "", ""
    node.attributes.clear()
    node.attributes.update(last.attributes)
    set_inputs(node, last.inputs)
    set_inputs(last, ())
    return front


def _alone(operator: str, attributes: Mapping[str, Any], dtype: onnx_ir.DataType) -> onnx_ir.Model:
    """A model of one operator, in the opset that brought it."""
    schema = onnx.defs.get_schema(operator)
    if schema.min_input != 1:
        raise ConversionError(f"it has {schema.min_input} operands")
    value = onnx_ir.Value(name="x", type=onnx_ir.TensorType(dtype))
    given = {name: item for name, item in attributes.items() if item is not None}
    node = onnx_ir.node(operator, [value], given, name=operator)
    node.outputs[0].name = "y"
    node.outputs[0].type = value.type
    graph = onnx_ir.Graph(
        [value], node.outputs, nodes=[node], opset_imports={"": schema.since_version}, name=operator
    )
    return onnx_ir.Model(graph, ir_version=_IR_VERSION)


def _taken(graph: onnx_ir.Graph) -> list[onnx_ir.Node]:
    """The nodes of a graph, which doesn't have them any more."""
    nodes = list(graph)
    graph.outputs.clear()
    graph.remove(nodes)
    return nodes
