"""Replace an operator by the simpler ones that ONNX's own schema defines it by."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir

from conrepair.formats.onnx.passes.fold_constants import fold_constants
from conrepair.formats.onnx.passes.raise_opset import raise_opset
from conrepair.ground.onnx_graphs.computing import read_from_outside
from conrepair.ground.onnx_graphs.defaults import schema_of, write_defaults
from conrepair.ground.onnx_graphs.infer_shapes import type_of

_IR_VERSION = 10  # of the model that a body is inferred in; any that knows functions does


def function_body(node: onnx_ir.Node, opset: int, target: int) -> tuple[onnx_ir.Function, int] | None:
    """The body of an operator that is defined by others, for this call of it.

    Args:
        node: The call; its missing attributes are set to their defaults.
        opset: That the node is written in, of its domain.
        target: The opset that is aimed at. A body of this opset or an older one is preferred; an older one is raised.

    Returns:
        The body, and the opset it's written in; None when the operator is a primitive, or its body depends on
        types that aren't known.
    """
    schema = schema_of(node, opset)
    if schema is None:
        return None
    context = not schema.has_function
    versions = schema.context_dependent_function_opset_versions if context else schema.function_opset_versions
    usable = [version for version in versions if version <= opset]
    if not usable:
        return None
    write_defaults(node, opset)
    version = max((item for item in usable if item <= target), default=min(usable))
    packed = _context_body(schema, node, version) if context else schema.get_function_with_opset_version(version)
    if not packed:
        return None
    proto = onnx.FunctionProto()
    proto.ParseFromString(packed)
    del proto.output[len(node.outputs) :]
    if not (_complete_outputs(proto, node) and _hand_in(proto, node)):
        return None
    body = onnx_ir.from_proto(proto)
    _resolve_attributes(body, node)
    written_in = body.opset_imports.get("", target if node.domain else version)
    return _specialised(body, node, target), max(written_in, target)


def _context_body(schema: Any, node: onnx_ir.Node, version: int) -> bytes | None:
    types = [kind.SerializeToString() for value in node.inputs if (kind := type_of(value)) is not None]
    if len(types) != len(node.inputs):
        return None
    call = onnx_ir.serde.serialize_node(node).SerializeToString()
    body: bytes = schema.get_context_dependent_function_with_opset_version(version, call, types)
    return body


def _complete_outputs(proto: onnx.FunctionProto, call: onnx_ir.Node) -> bool:
    """Give outputs that the body doesn't compute a constant; False when one is wanted (as of Attention)."""
    computed = {*proto.input, *(name for node in proto.node for name in node.output)}
    for name, value in zip(proto.output, call.outputs, strict=False):
        if name not in computed:
            if value.name and (value.uses() or value.is_graph_output()):
                return False
            value.name = value.name or f"{call.outputs[0].name}/{name}"
            proto.node.append(onnx.helper.make_node("Constant", [], [name], value_float=0.0))
    return True


def _hand_in(proto: onnx.FunctionProto, call: onnx_ir.Node) -> bool:
    """Make inputs of what a graph in the call's attributes reads from outside; False when a name means two things."""
    outer = {str(value.name): value for value in read_from_outside(call)}
    if set(outer) & {*proto.input, *(name for node in proto.node for name in node.output)}:
        return False
    if outer:
        call.resize_inputs(len(proto.input))
        proto.input.extend(outer)
        call.resize_inputs(len(proto.input))
        for index, value in enumerate(outer.values(), len(proto.input) - len(outer)):
            call.replace_input_with(index, value)
    return True


def _resolve_attributes(body: onnx_ir.Function, call: onnx_ir.Node) -> None:
    """Write the call's attributes in where the body refers to them."""
    for node in body.all_nodes():
        for name, attribute in list(node.attributes.items()):
            if not attribute.is_ref():
                continue
            del node.attributes[name]
            given = call.attributes.get(str(attribute.ref_attr_name))
            if given is not None:
                node.attributes[name] = onnx_ir.Attr(name, given.type, given.value)


def _specialised(body: onnx_ir.Function, call: onnx_ir.Node, target: int) -> onnx_ir.Function:
    """Give the body's values the types and constants that they have in this call, fold what follows, raise the rest.

    Bodies compute axes that older opsets want as attributes.
    """
    for formal, actual in zip(body.inputs, call.inputs, strict=False):
        if actual is not None:
            formal.type, formal.shape = actual.type, actual.shape
            formal.const_value = onnx_ir.convenience.get_const_tensor(actual)
    model = onnx_ir.Model(body.graph, ir_version=_IR_VERSION)
    fold_constants(model)
    raise_opset(model, target)
    graph = model.graph
    for name in list(graph.initializers):  # which functions can't have
        value = graph.initializers.pop(name)
        if value.const_value is None:
            raise ValueError(f"{name} has no value")
        constant = onnx_ir.Node("", "Constant", [], [onnx_ir.AttrTensor("value", value.const_value)])
        result = constant.outputs[0]
        result.name, result.type, result.shape = name, value.type, value.shape
        onnx_ir.convenience.replace_all_uses_with([value], [result], replace_graph_outputs=True)
        graph.insert_before(graph[0], constant)
    _name_after(call, graph)
    return onnx_ir.Function(body.domain, body.name, graph=graph, attributes=[])


def _name_after(call: onnx_ir.Node, graph: onnx_ir.Graph) -> None:
    """Let names begin with the call's: for messages, and because other graphs may have those of the body already."""
    label = call.name or call.outputs[0].name
    nodes = list(graph.all_nodes())
    values = [value for item in graph.subgraphs() for value in item.inputs]
    values += [value for node in nodes for value in node.outputs]
    for value in values:
        if value.name:
            value.name = f"{call.outputs[0].name or label}/{value.name}"
    for node in nodes:
        node.name = f"{label}/{node.op_type}"
