"""Quantization in ONNX graphs: its nodes in the vocabulary, and the real numbers that integer tensors stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx_ir

from conrepair.data.tensor_spec import Quantization
from conrepair.graph.layer_graph import Attribute
from conrepair.networks.onnx_call import Call
from conrepair.networks.onnx_constants import Constants
from conrepair.networks.onnx_source import Source

__all__ = ["RULES", "quantizations"]

_STORED = {"INT8", "UINT8", "INT16", "UINT16"}
# Operators that write integers as they read them, from their first input.
_MOVING = {
    *(
        "DepthToSpace",
        "Flatten",
        "Gather",
        "Identity",
        "MaxPool",
        "Relu",
        "Reshape",
        "Slice",
        "SpaceToDepth",
        "Split",
    ),
    *("Squeeze", "Tile", "Transpose", "Unsqueeze", "Expand"),
}
# Where operators that compute with integers have the scale and the zero point of their output.
_OUTPUT_SCALES = {
    "QLinearConv": (6, 7),
    "QLinearMatMul": (6, 7),
    "com.microsoft.QGemm": (7, 8),
    "com.microsoft.QLinearAdd": (6, 7),
    "com.microsoft.QLinearAveragePool": (3, 4),
    "com.microsoft.QLinearConcat": (0, 1),
    "com.microsoft.QLinearGlobalAveragePool": (3, 4),
    "com.microsoft.QLinearLeakyRelu": (3, 4),
    "com.microsoft.QLinearMul": (6, 7),
    "com.microsoft.QLinearReduceMean": (3, 4),
    "com.microsoft.QLinearSigmoid": (3, 4),
    "com.microsoft.QLinearSoftmax": (3, 4),
}


def _linear(call: Call) -> None:
    if call.attribute("block_size", 0):
        call.emit_native()
        return
    single = call.shape(1) is not None and math.prod(call.shape(1) or ()) == 1
    axis = 1 if single else call.axis(int(call.attribute("axis", 1)))
    attributes: dict[str, Attribute] = {"axis": axis}
    call.emit(call.operator, call.varying(), attributes, call.parameters({1: "scale", 2: "zero_point"}))


def quantizations(source: Source, constants: Constants) -> dict[str, Quantization]:
    """Scale and zero point of integer tensors, by name; of those only that have one for all channels.

    They stand in the nodes in front of a tensor and behind it, not with it. Through operators that only move
    elements they are handed on, in both directions.
    """
    found: dict[onnx_ir.Value, Quantization] = {}
    nodes = list(source.graph)
    for node in nodes:
        for value, numbers in _stated(node):
            quantization = _read(numbers, constants)
            if quantization is not None and _is_stored(value):
                found.setdefault(value, quantization)
    for node in nodes:
        _hand_on(node, node.inputs[:1], node.outputs, found)
    for node in reversed(nodes):
        _hand_on(node, node.outputs, node.inputs[:1], found)
    return {str(value.name): item for value, item in found.items() if value in source.variable}


def _stated(node: onnx_ir.Node) -> Iterator[tuple[onnx_ir.Value, Sequence[onnx_ir.Value | None]]]:
    """Tensors whose scale and zero point a node says."""
    if node.op_type == "QuantizeLinear":
        yield node.outputs[0], node.inputs[1:3]
    elif node.op_type == "DequantizeLinear" and node.inputs[0] is not None:
        yield node.inputs[0], node.inputs[1:3]
    places = _OUTPUT_SCALES.get(f"{node.domain}.{node.op_type}" if node.domain else node.op_type)
    if places is not None and len(node.inputs) > places[0]:
        yield node.outputs[0], node.inputs[places[0] : places[1] + 1]


def _read(numbers: Sequence[onnx_ir.Value | None], constants: Constants) -> Quantization | None:
    arrays = []
    for value in numbers:
        if value is not None:
            if value not in constants or math.prod(constants.shape(value)) != 1:
                return None
            arrays.append(constants.array(value).reshape(-1)[0])
    if not arrays:
        return None
    return Quantization(float(arrays[0]), int(arrays[1]) if len(arrays) > 1 else 0)


def _is_stored(value: onnx_ir.Value) -> bool:
    return value.dtype is not None and value.dtype.name in _STORED


def _hand_on(
    node: onnx_ir.Node,
    begin: Sequence[onnx_ir.Value | None],
    end: Sequence[onnx_ir.Value | None],
    found: dict[onnx_ir.Value, Quantization],
) -> None:
    if node.op_type in _MOVING and not node.domain:
        known = next((found[value] for value in begin if value in found), None)
        for value in end:
            if known is not None and value is not None and _is_stored(value):
                found.setdefault(value, known)


RULES: Mapping[str, Callable[[Call], None]] = {
    "DequantizeLinear": _linear,
    "QuantizeLinear": _linear,
    "com.microsoft.DequantizeLinear": _linear,
    "com.microsoft.QuantizeLinear": _linear,
}
