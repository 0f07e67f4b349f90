"""What an ONNX file says, without running it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from conrepair.formats.models.identity import model_files, model_tensors, onnx_tensors
from conrepair.formats.models.model import Description, Model, short_text
from conrepair.formats.models.runnable import loading
from conrepair.formats.onnx.load.proto_file import fed_to, inner_graphs, nodes_of, opset_of, read_proto
from conrepair.formats.onnx.load.quantization import io_quantization
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ModelLoadError

__all__ = ["STORED", "describe_proto", "nodes_of", "read_valid", "specs_of_proto", "table_sizes", "with_quantization"]

STORED = frozenset({"int8", "uint8", "int16", "uint16"})
"""Types that may stand for real numbers."""

# Operators that leave indices what they are, and which of their operands those are. Negative ones count from
# the end: Where(indices < 0, indices + size, indices).
_FIRST, _BRANCHES = slice(1), slice(1, 3)
_VALUES = {
    "Cast": _FIRST,
    "Flatten": _FIRST,
    "Identity": _FIRST,
    "Reshape": _FIRST,
    "Squeeze": _FIRST,
    "Unsqueeze": _FIRST,
    "Where": _BRANCHES,
}
_PRODUCTS = {"Conv", "ConvInteger", "Gemm", "MatMul", "MatMulInteger", "QGemm", "QLinearConv", "QLinearMatMul"}
_SEVEN_BITS = 64
_TABLES = {"Cast", "DequantizeLinear", "Identity"}


def read_valid(model: Model) -> onnx.ModelProto:
    """The file, once ONNX's own rules are kept; weights in external files aren't read.

    Raises:
        ModelLoadError: if they aren't.
    """
    path = Path(model.path)
    with loading(model, "an ONNX model"):
        proto = read_proto(path)
        outside = any(tensor.external_data for tensor in model_tensors(proto))
        linked = [file for file in model_files(path)[1:] if file.is_symlink()] if outside else []
        if not linked:
            onnx.checker.check_model(model.path)
            _check_names(proto.graph)
    if linked:
        raise ModelLoadError(
            f"{path}: its data {linked[0].name} is a link, as in a hub's cache, which ONNX's libraries don't follow. "
            f"Copy the folder with what its links lead to (`cp -rL {path.parent} COPY`), and give the copy."
        )
    return proto


def _check_names(graph: onnx.GraphProto) -> None:
    """Refuse outputs of one name, which the checker lets pass: nobody could tell their values apart.

    Raises:
        ValueError: naming one.
    """
    for name, count in Counter(value.name for value in graph.output).items():
        if count > 1:
            raise ValueError(f"{count} of its outputs are called '{name}'")


def describe_proto(
    proto: onnx.ModelProto, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
) -> Description:
    """What a file says, but for its inputs and outputs, which are given."""
    weights: Counter[str] = Counter()
    matrices: Counter[str] = Counter()
    for tensor in onnx_tensors(proto.graph):
        if tensor.dims:
            matrices[_dtype_name(tensor.data_type)] += sum(size > 1 for size in tensor.dims) > 1
            weights[_dtype_name(tensor.data_type)] += int(np.prod(tensor.dims, dtype=np.int64))
    sizes = table_sizes(proto)
    return Description.counted(
        (node.op_type for node in nodes_of(proto.graph)),
        weights,
        format="ONNX",
        inputs=tuple(replace(spec, high=sizes.get(spec.name)) for spec in inputs),
        outputs=tuple(outputs),
        matrices=dict(matrices),
        computes=_rounded_to(proto.graph),
        metadata={item.key: short_text(item.value.encode()) for item in proto.metadata_props},
        warnings=tuple(_saturating(proto.graph)),
        ir_version=proto.ir_version,
        opset=opset_of(proto),
        producer=f"{proto.producer_name} {proto.producer_version}".strip(),
    )


def _rounded_to(graph: onnx.GraphProto) -> str:
    """The type that most matrices pass before they're used, as training with fake quantization leaves them."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    matrices = [name for name, tensor in tensors.items() if sum(size > 1 for size in tensor.dims) > 1]
    quantizing = (node for node in graph.node if node.op_type == "QuantizeLinear" and node.input[0] in matrices)
    types = [
        _dtype_name(tensors[node.input[2]].data_type) if node.input[2:] and node.input[2] in tensors else "uint8"
        for node in quantizing
    ]
    return types[0] if len(types) > len(matrices) / 2 else ""


def _saturating(graph: onnx.GraphProto) -> Iterator[str]:
    """That products of uint8 by int8 overflow 16 bits where a processor adds two of them first."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    quantizing = [node for node in graph.node if node.op_type == "QuantizeLinear"]
    of_integers = [tensors.get(node.input[2]) if node.input[2:] else None for node in quantizing]
    unsigned = any(zero is None or zero.data_type == onnx.TensorProto.UINT8 for zero in of_integers)
    if not unsigned and not any(node.op_type == "DynamicQuantizeLinear" for node in graph.node):
        return
    read = {name for node in graph.node if node.op_type in _PRODUCTS for name in node.input}
    read |= {node.input[0] for node in graph.node if node.op_type == "DequantizeLinear" and node.output[0] in read}
    weights = [item for name, item in tensors.items() if name in read and item.data_type == onnx.TensorProto.INT8]
    matrices = [item for item in weights if len(item.dims) > 1 and not item.external_data]
    names = [
        item.name for item in matrices if np.abs(numpy_helper.to_array(item).astype(np.int16)).max() > _SEVEN_BITS
    ]
    if names:
        yield (
            f"{len(names)} weights that use all of int8 ({names[0]} first) are multiplied by uint8: on x86-64 "
            "without VNNI ONNX Runtime's sums saturate at 16 bits. Quantize with reduce_range, or activations to int8"
        )


def table_sizes(proto: onnx.ModelProto) -> dict[str, int]:
    """The smallest constant table that each input is looked up in."""
    names = {value.name: value.name for value in proto.graph.input}
    tables: dict[str, list[int]] = {}
    sizes: dict[str, int] = {}
    _look_up(proto.graph, names, tables, sizes)
    return sizes


def _look_up(
    graph: onnx.GraphProto, names: dict[str, str], tables: dict[str, list[int]], sizes: dict[str, int]
) -> None:
    """Add the tables that a graph looks inputs up in, and those of graphs in its nodes, which see its values."""
    tables |= {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if node.op_type == "Constant" and "value" in attributes:
            tables[node.output[0]] = list(attributes["value"].t.dims)
        elif node.op_type in _TABLES and node.input[0] in tables:
            tables[node.output[0]] = tables[node.input[0]]
        elif node.op_type in _VALUES:
            origin = next((names[name] for name in node.input[_VALUES[node.op_type]] if name in names), None)
            if origin is not None:
                names[node.output[0]] = origin
        elif node.op_type == "Gather" and node.input[0] in tables and node.input[1] in names:
            size = tables[node.input[0]][attributes["axis"].i if "axis" in attributes else 0]
            name = names[node.input[1]]
            sizes[name] = min(size, sizes.get(name, size))
        for inner in inner_graphs(node):
            _look_up(inner, dict(names), dict(tables), sizes)


def specs_of_proto(proto: onnx.ModelProto) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    """Inputs and outputs as the file declares them; shapes of outputs that it leaves open are inferred."""
    inputs = tuple(map(_spec, fed_to(proto.graph)))
    outputs = tuple(map(_spec, proto.graph.output))
    if not all(_is_whole(value) for value in proto.graph.output):
        outputs = tuple(map(_spec, onnx.shape_inference.infer_shapes(proto).graph.output))
    return with_quantization(proto, inputs), with_quantization(proto, outputs)


def with_quantization(proto: onnx.ModelProto, specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs or outputs with the real numbers that their integers stand for."""
    if not any(spec.dtype in STORED for spec in specs):
        return tuple(specs)
    known = io_quantization(proto)
    return tuple(replace(spec, quantization=known.get(spec.name)) for spec in specs)


def _spec(value: onnx.ValueInfoProto) -> TensorSpec:
    dims = value.type.tensor_type.shape.dim
    shape = tuple(dim.dim_value if dim.dim_value > 0 else dim.dim_param or "?" for dim in dims)
    return TensorSpec(value.name, shape, _type_words(value.type))


def _is_whole(value: onnx.ValueInfoProto) -> bool:
    """Whether its shape is declared."""
    kind = value.type.tensor_type
    return kind.HasField("shape") and all(dim.WhichOneof("value") for dim in kind.shape.dim)


def _type_words(kind: onnx.TypeProto) -> str:
    """An element type, or what else an input or output is: "seq(float32)"."""
    match kind.WhichOneof("value"):
        case "sequence_type":
            return f"seq({_type_words(kind.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({_type_words(kind.optional_type.elem_type)})"
        case "map_type":
            return f"map({_dtype_name(kind.map_type.key_type)}, {_type_words(kind.map_type.value_type)})"
    return _dtype_name(kind.tensor_type.elem_type)


def _dtype_name(data_type: int) -> str:
    name = str(onnx.TensorProto.DataType.Name(data_type)).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)
