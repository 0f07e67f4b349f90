"""Types and shapes that only ONNX Runtime infers: behind operators that aren't ONNX's."""

from __future__ import annotations

from typing import Any

import onnx_ir

from conrepair.networks.onnx_cut import cut
from conrepair.networks.onnx_session import Sessions
from conrepair.networks.onnx_source import OnnxSource
from conrepair.onnx_passes.infer_shapes import static_shape

__all__ = ["complete_types"]

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
