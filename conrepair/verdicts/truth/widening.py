"""A network in float64: its inputs, constants and casts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from conrepair.ground.operators.record import Array

_NARROW = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
REAL = (TensorProto.DOUBLE, *_NARROW)
"""Element types of real numbers."""

_TYPES = dict.fromkeys(_NARROW, TensorProto.DOUBLE)
_NAMING_A_TYPE = {"to", "dtype", "output_datatype"}  # attributes


def doubled(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model in float64; what operators take in float32 alone (scales of Resize) stays.

    Args:
        model: With its weights inside.
    """
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    kept = set(_narrow_alone(model))
    _widen_graph(wide.graph, kept)
    for function in wide.functions:
        _widen_nodes(function.node)
    return wide


def widened_feeds(feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Feeds of a network for the same in float64.

    Args:
        feeds: By input; real numbers of any type.
    """
    return {name: _wide(array) for name, array in feeds.items()}


def with_outputs(model: onnx.ModelProto, tensors: Collection[str]) -> onnx.ModelProto:
    """The same model, with more tensors among its outputs.

    Args:
        model: Any.
        tensors: Names of tensors of its graph.
    """
    known = {item.name for item in model.graph.output}
    more = [name for name in tensors if name not in known]
    if not more:
        return model
    wider = onnx.ModelProto()
    wider.CopyFrom(model)
    inferred = onnx.shape_inference.infer_shapes(model).graph
    infos = {item.name: item for item in (*inferred.value_info, *inferred.input)}
    wider.graph.output.extend(infos.get(name, onnx.ValueInfoProto(name=name)) for name in more)
    return wider


def types_of(model: onnx.ModelProto) -> dict[str, int]:
    """The element types of a graph's tensors, where they can be inferred.

    Args:
        model: Any.
    """
    graph = onnx.shape_inference.infer_shapes(model).graph
    found = {item.name: item.data_type for item in graph.initializer}
    for item in (*graph.value_info, *graph.input, *graph.output):
        if item.type.HasField("tensor_type"):
            found[item.name] = item.type.tensor_type.elem_type
    return found


def sizes_of(item: onnx.ValueInfoProto) -> list[int] | None:
    """The sizes of a tensor; None where not all of them are known by number.

    Args:
        item: Of a graph.
    """
    kind = item.type.tensor_type
    sizes = [size.dim_value for size in kind.shape.dim if size.HasField("dim_value")]
    return sizes if kind.HasField("shape") and len(sizes) == len(kind.shape.dim) else None


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind not in "biuSUOcT" else array


def _narrow_alone(model: onnx.ModelProto) -> Iterator[str]:
    """Tensors that an operator takes in float32, whatever the others' types are."""
    versions = {item.domain: item.version for item in model.opset_import}
    for node in model.graph.node:
        if not onnx.defs.has(node.op_type, versions.get(node.domain, 1), node.domain):
            continue
        formal = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain).inputs
        for name, taken in zip(node.input, formal, strict=False):
            if taken.type_str == "tensor(float)":
                yield name


def _widen_graph(graph: onnx.GraphProto, kept: Collection[str] = ()) -> None:
    del graph.value_info[:]
    for value in (*graph.input, *graph.output):
        kind = value.type
        while kind.HasField("sequence_type") or kind.HasField("optional_type"):
            kind = (kind.sequence_type if kind.HasField("sequence_type") else kind.optional_type).elem_type
        if value.name not in kept and kind.HasField("tensor_type"):
            kind.tensor_type.elem_type = _TYPES.get(kind.tensor_type.elem_type, kind.tensor_type.elem_type)
    for tensor in graph.initializer:
        if tensor.name not in kept:
            _widen(tensor)
    _widen_nodes(graph.node, kept)


def _widen_nodes(nodes: Any, kept: Collection[str] = ()) -> None:
    for node in nodes:
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1, np.float32))))
        if set(node.output) & set(kept):
            continue
        for attribute in node.attribute:
            if attribute.name in _NAMING_A_TYPE and attribute.type == AttributeProto.INT:
                attribute.i = _TYPES.get(attribute.i, attribute.i)
            elif attribute.type == AttributeProto.TENSOR:
                _widen(attribute.t)
            elif attribute.type == AttributeProto.GRAPH:
                _widen_graph(attribute.g)
            elif attribute.name in {"value_float", "value_floats"} and node.op_type == "Constant":
                wide = np.array(helper.get_attribute_value(attribute), dtype=np.float64)
                attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(wide)))


def _widen(tensor: TensorProto) -> None:
    if uses_external_data(tensor):
        raise ValueError(f"the numbers of {tensor.name} aren't in the model: load them first")
    if tensor.data_type in _NARROW:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
