"""Types, shapes and attributes of ONNX graphs as plain values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir

from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.formats.onnx.read.cut import cut
from conrepair.formats.onnx.read.session import Sessions
from conrepair.formats.onnx.read.source import OnnxSource
from conrepair.ground.graph.layer_graph import Attribute
from conrepair.ground.onnx_graphs.infer_shapes import static_shape

# Shapes that are written into an ONNX file, for its reshapes and expansions.

_SHAPED = frozenset({"Reshape", "Expand"})  # their first input gets another shape, the second

_TRIED = 4


def written_shapes(path: Path | str) -> dict[str, tuple[int, ...]]:
    """The shapes in a file, by what its nodes give; of the main graph.

    Args:
        path: Of the file.
    """
    from onnx import numpy_helper

    graph = read_proto(path).graph
    held = {tensor.name: tensor for tensor in graph.initializer if not tensor.external_data}
    for node in graph.node:
        if node.op_type == "Constant":
            held.update((node.output[0], item.t) for item in node.attribute if item.name == "value")
    return {
        node.output[0]: tuple(map(int, numpy_helper.to_array(held[node.input[1]]).reshape(-1)))
        for node in graph.node
        if node.op_type in _SHAPED and len(node.input) > 1 and node.input[1] in held
    }


def batch_numbers(shapes: Mapping[str, tuple[int, ...]], axes: Collection[int]) -> list[int]:
    """Numbers in shapes that may be the batch's, few and in their order.

    Args:
        shapes: Of `written_shapes`.
        axes: That inputs have their samples along.
    """
    places = sorted({0, *axes})
    found = [shape[place] for shape in shapes.values() for place in places if place < len(shape)]
    return list(dict.fromkeys(number for number in found if number > 0))[:_TRIED]


# Types and shapes that only ONNX Runtime infers: behind operators that aren't ONNX's.

_ELEMENTS = {"tensor(float)": "FLOAT", "tensor(double)": "DOUBLE"}


def complete_types(source: OnnxSource, sessions: Sessions) -> bool:
    """Write them onto the graph's values, in place; whether there were any.

    Raises:
        InferenceError: if ONNX Runtime refuses the network.
    """
    missing = [
        value
        for node in source.graph
        for value in node.outputs
        if value.name and (value.type is None or (value.shape is None and isinstance(value.type, onnx_ir.TensorType)))
    ]
    if not missing:
        return False
    inputs = [str(value.name) for value in source.graph.inputs]
    piece = cut(source, inputs, [str(value.name) for value in missing])
    for info in piece.proto.graph.input:
        sizes = static_shape(source.values[info.name])
        for dimension, size in zip(info.type.tensor_type.shape.dim, sizes or [], strict=False):
            dimension.dim_value = size
    for value, output in zip(missing, sessions.open(piece).session.get_outputs(), strict=True):
        _complete(value, output)
    return True


def _complete(value: onnx_ir.Value, output: Any) -> None:
    kind = str(output.type)
    if not kind.startswith("tensor("):
        return
    if value.type is None:
        name = kind.removeprefix("tensor(").removesuffix(")").upper()
        value.type = onnx_ir.TensorType(onnx_ir.DataType[_ELEMENTS.get(kind, name)])
    if value.shape is None and output.shape is not None:
        # ONNX Runtime says [] of unknown ranks and of scalars alike.
        value.shape = onnx_ir.Shape(output.shape) if output.shape else None


def dtype_name(value: onnx_ir.Value) -> str:
    """What numpy calls a tensor's type; "object" for text and for what isn't a tensor."""
    if not isinstance(value.type, onnx_ir.TensorType) or value.type.dtype == onnx_ir.DataType.STRING:
        return "object"
    return str(value.type.dtype.numpy().name)


def ints(shape: Sequence[int] | None) -> tuple[int, ...] | None:
    """A shape as a tuple."""
    return None if shape is None else tuple(int(size) for size in shape)


def stripped(names: Sequence[str]) -> tuple[str, ...]:
    """Names without the "" at the end."""
    found = list(names)
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def plain_value(value: Any) -> Attribute:
    """An attribute as numbers, text, or tuples of those; None for what is none of them."""
    # Tensors last: a forest has a million numbers, and to ask for a tensor's protocol takes long.
    if isinstance(value, float):
        return float(str(np.float32(value)))  # files have 32 bits: 1e-5 rather than 9.99999974e-06
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple):
        return tuple(plain_value(item) for item in value)  # type: ignore[return-value]
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    elif isinstance(value, onnx_ir.TensorProtocol):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return plain_value(value.reshape(-1)[0].item()) if value.size == 1 else None
    return None
