"""Sizes that a network computes when it runs, and that follow from the sizes of its inputs all the same."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir
from onnx_ir.serde import deserialize_type_proto_for_shape, deserialize_type_proto_for_type, serialize_node

from conrepair.formats.onnx.read.cut import is_plain
from conrepair.formats.onnx.read.source import OnnxSource, is_random
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.onnx_graphs.computing import computing, subgraphs
from conrepair.ground.onnx_graphs.defaults import attribute, schema_of
from conrepair.ground.onnx_graphs.infer_shapes import static_shape, type_of
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.onnx_session import open_session

_SMALL = 128  # elements; what's longer isn't sizes
_INFER_ERRORS = (onnx.shape_inference.InferenceError, ValueError, RuntimeError)


def follow_sizes(source: OnnxSource) -> Mapping[str, Array]:
    """Write shapes that are known once computed sizes are onto the graph's values, in place.

    ONNX's own inference follows few of the operators that exporters compute sizes with. Here each small value
    that depends on sizes only is computed, in the graph's order, so that what's behind it can be inferred.

    Returns:
        The numbers of those values, by name.
    """
    if all(static_shape(value) is not None for value in source.variable if value.name):
        return {}
    known: dict[onnx_ir.Value, Array] = {}
    for value in source.graph.initializers.values():
        if value.const_value is not None and value.const_value.size <= _SMALL and is_plain(value.const_value.dtype):
            known[value] = value.const_value.numpy()
    for node in source.graph:
        if any(static_shape(value) is None for value in node.outputs if value.name):
            _infer(node, known, source)
        known.update(_computed(node, known, source))
    return {str(value.name): array for value, array in known.items() if value in source.variable}


def _infer(node: onnx_ir.Node, known: Mapping[onnx_ir.Value, Array], source: OnnxSource) -> None:
    """Infer the shapes of a node's outputs from its inputs, whose numbers may be known."""
    schema = schema_of(node, source.model.opset_imports.get(node.domain, 1))
    given = [value for value in node.inputs if value is not None]
    types = {str(value.name): kind for value in given if (kind := type_of(value)) is not None}
    if schema is None or len(types) < len(set(given)) or subgraphs(node):
        return
    data = {str(value.name): onnx.numpy_helper.from_array(known[value]) for value in given if value in known}
    imports = [onnx.helper.make_opsetid(*item) for item in source.model.opset_imports.items()]
    try:
        found = onnx.shape_inference.infer_node_outputs(
            schema, serialize_node(node), types, data, opset_imports=imports, ir_version=source.model.ir_version
        )
    except _INFER_ERRORS:
        return  # the graph contradicts itself, which whoever runs it will say better
    for value in node.outputs:
        if value.name in found:
            value.type = value.type or deserialize_type_proto_for_type(found[value.name])
            value.shape = deserialize_type_proto_for_shape(found[value.name]) or value.shape


def _computed(
    node: onnx_ir.Node, known: Mapping[onnx_ir.Value, Array], source: OnnxSource
) -> dict[onnx_ir.Value, Array]:
    """A node's outputs, if they are small and depend on known numbers only."""
    shape = static_shape(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
    if node.op_type in {"Shape", "Size"} and not node.domain and shape is not None:
        asked = shape[attribute(node, "start") : attribute(node, "end")]
        sizes = math.prod(shape) if node.op_type == "Size" else asked
        return {node.outputs[0]: np.array(sizes, np.int64)}
    given = [value for value in node.inputs if value is not None]
    small = all(is_plain(value.dtype) and _length(value) <= _SMALL for value in node.outputs if value.name)
    if not small or is_random(node) or subgraphs(node) or not all(value in known for value in given):
        return {}
    wanted = [value for value in node.outputs if value.name]
    return dict(zip(wanted, _run(node, {str(value.name): known[value] for value in given}, source), strict=True))


def _length(value: onnx_ir.Value) -> int:
    shape = static_shape(value)
    return _SMALL + 1 if shape is None else math.prod(shape)


def _run(node: onnx_ir.Node, given: Mapping[str, Array], source: OnnxSource) -> list[Array]:
    names = [value.name for value in node.outputs if value.name]
    proto = computing([node], {}, names, source.model.opset_imports, given)
    try:
        results: list[Array] = open_session(proto.SerializeToString(), threads=1, quiet=True).run(None, {})
    # onnxruntime raises one class per status code, without a common base of their own.
    except Exception as error:
        raise InferenceError(f"{node.op_type} '{node.name}' can't be computed: {error}") from error
    return results
