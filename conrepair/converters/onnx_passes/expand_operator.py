"""Replace an operator by the simpler ones that ONNX's own schema defines it by."""

from __future__ import annotations

import onnx
import onnx_ir

from conrepair.converters.onnx_passes.fold_constants import fold_constants
from conrepair.converters.onnx_passes.infer_shapes import type_of

__all__ = ["function_body"]

_IR_VERSION = 10  # of the model that a body is inferred in; any that knows functions does


def function_body(node: onnx_ir.Node, opset: int, target: int) -> tuple[onnx_ir.Function, int] | None:
    """The body of an operator that is defined by others, for this call of it.

    Args:
        node: The call; its missing attributes are set to their defaults.
        opset: That the node is written in.
        target: The opset that is aimed at. A body of this opset or an older one is preferred.

    Returns:
        The body, and the opset it's written in; None when the operator is a primitive, or its body depends on
        types that aren't known.
    """
    if any(isinstance(attribute.value, onnx_ir.Graph) for attribute in node.attributes.values()):
        return None  # SequenceMap: its body calls a graph
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    context = not schema.has_function
    versions = schema.context_dependent_function_opset_versions if context else schema.function_opset_versions
    usable = [version for version in versions if version <= opset]
    if not usable:
        return None
    _set_defaults(node, schema)
    version = max((item for item in usable if item <= target), default=min(usable))
    packed = _context_body(schema, node, version) if context else schema.get_function_with_opset_version(version)
    if not packed:
        return None
    proto = onnx.FunctionProto()
    proto.ParseFromString(packed)
    del proto.output[len(node.outputs) :]
    try:
        body = onnx_ir.from_proto(proto)
    except onnx_ir.serde.SerdeError:
        return None  # Attention's body names an output that it doesn't compute
    _resolve_attributes(body, node)
    _specialise(body, node)
    return body, body.opset_imports.get("", version)


def _context_body(schema: onnx.defs.OpSchema, node: onnx_ir.Node, version: int) -> bytes | None:
    types = [kind.SerializeToString() for value in node.inputs if (kind := type_of(value)) is not None]
    if len(types) != len(node.inputs):
        return None
    call = onnx_ir.serde.serialize_node(node).SerializeToString()
    body: bytes = schema.get_context_dependent_function_with_opset_version(version, call, types)
    return body


def _set_defaults(node: onnx_ir.Node, schema: onnx.defs.OpSchema) -> None:
    for name, attribute in schema.attributes.items():
        default = attribute.default_value
        if name not in node.attributes and default.type != onnx.AttributeProto.UNDEFINED:
            node.attributes[name] = onnx_ir.from_proto(default)


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


def _specialise(body: onnx_ir.Function, call: onnx_ir.Node) -> None:
    """Give the body's values the types and constants that they have in this call, and fold what follows.

    Bodies compute axes that older opsets want as attributes.
    """
    for formal, actual in zip(body.inputs, call.inputs, strict=False):
        if actual is not None:
            formal.type, formal.shape = actual.type, actual.shape
            formal.const_value = onnx_ir.convenience.get_const_tensor(actual)
    model = onnx_ir.Model(body.graph, ir_version=_IR_VERSION)
    fold_constants(model)
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
