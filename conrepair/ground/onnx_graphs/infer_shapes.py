"""Write types and shapes that follow from the inputs onto all values."""

from __future__ import annotations

import onnx
import onnx_ir

_SMALL = 1024  # bytes; initializers up to this size may be shapes and axes, whose values inference needs


def infer_shapes(model: onnx_ir.Model) -> None:
    """Infer in place; weights stay where they are, so models of any size can be given.

    What can't be inferred (operators of other domains) is left without a type.
    """
    try:
        proto = onnx.shape_inference.infer_shapes(without_weights(model)[0], data_prop=True)
    except onnx.shape_inference.InferenceError:
        return  # the graph contradicts itself, which whoever runs it will say better
    inferred = onnx_ir.from_proto(proto)
    for mine, theirs in zip(model.graphs(), inferred.graphs(), strict=True):
        known = onnx_ir.convenience.create_value_mapping(theirs)
        for name, value in onnx_ir.convenience.create_value_mapping(mine).items():
            if name in known and not value.is_graph_input() and not value.is_initializer():
                value.type = known[name].type or value.type
                value.shape = known[name].shape if known[name].shape is not None else value.shape


def contradiction(model: onnx_ir.Model) -> str | None:
    """What types and shapes in a graph don't fit together, in ONNX's words; None for a graph without fault."""
    try:
        onnx.shape_inference.infer_shapes(without_weights(model)[0], strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        return str(error).strip()
    return None


def without_weights(model: onnx_ir.Model) -> tuple[onnx.ModelProto, dict[str, onnx_ir.TensorProtocol]]:
    """The graph as ONNX's own functions take it, which copy models of up to 2 GiB, and the weights that it reads.

    Weights are inputs of it, behind the others unless they are inputs already.
    """
    light, weights = model.clone(), {}
    graph = light.graph
    for name, value in list(graph.initializers.items()):
        tensor = value.const_value
        if tensor is not None and tensor.dtype != onnx_ir.DataType.STRING and tensor.nbytes > _SMALL:
            weights[name] = tensor
            value.type, value.shape = onnx_ir.TensorType(tensor.dtype), onnx_ir.Shape(tensor.shape.numpy())
            del graph.initializers[name]
            if value not in graph.inputs:
                graph.inputs.append(value)
    return onnx_ir.to_proto(light), weights


def type_of(value: onnx_ir.Value | None) -> onnx.TypeProto | None:
    """The type of a value with its shape, as ONNX's own functions take it; None when it isn't known."""
    if value is None:
        return onnx.TypeProto()
    if value.type is None:
        if value.const_value is None:
            return None
        return onnx.helper.make_tensor_type_proto(int(value.const_value.dtype), static_shape(value))
    result = onnx.TypeProto()
    onnx_ir.serde.serialize_type_into(result, value.type)
    if value.shape is not None:
        onnx_ir.serde.serialize_shape_into(result, value.shape)
    return result


def type_name(value: onnx_ir.Value | None) -> str | None:
    """The type as ONNX's schemas write it, "tensor(float)"; None when it isn't known."""
    return None if value is None or value.type is None else _type_name(value.type)


def _type_name(kind: onnx_ir.TypeProtocol) -> str:
    if isinstance(kind, onnx_ir.SequenceType):
        return f"seq({_type_name(kind.elem_type)})"
    if isinstance(kind, onnx_ir.OptionalType):
        return f"optional({_type_name(kind.elem_type)})"
    return f"tensor({onnx.TensorProto.DataType.Name(int(kind.dtype)).lower()})"


def static_shape(value: onnx_ir.Value | None) -> list[int] | None:
    """The shape of a value, if all of it is known."""
    if value is None:
        return None
    shape = value.shape
    if shape is None and value.const_value is not None:
        shape = onnx_ir.Shape(value.const_value.shape.numpy())
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    return [int(size) for size in shape]  # type: ignore[arg-type]


def rank_of(value: onnx_ir.Value | None) -> int | None:
    """The number of dimensions, if it's known."""
    return None if value is None or value.shape is None else len(value.shape)
