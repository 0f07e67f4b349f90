"""Quantization in ONNX graphs: its nodes in the vocabulary, and the real numbers that integer tensors stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx_ir

from conrepair.formats.onnx.read.call import OnnxCall
from conrepair.formats.onnx.read.constants import OnnxConstants
from conrepair.formats.onnx.read.source import OnnxSource
from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.layer_graph import Attribute
from conrepair.ground.graph.operators import QUANTIZING
from conrepair.ground.operators.moves import MOVES

_STORED = {"INT8", "UINT8", "INT16", "UINT16"}
_OTHERS = {"Cast", "Concat", "Pad", "Shape", "Where"}  # they read several, or give others
MOVING = frozenset({*MOVES} - _OTHERS | {"Flatten", "Identity", "MaxPool", "Relu", "Squeeze", "Unsqueeze"})
"""Operators that write integers as they read them, from their first input."""

Places = tuple[int, int]
"""Of the scale and the zero point among a node's inputs."""

RESULTS: Mapping[str, Places] = {
    **dict.fromkeys(("QuantizeLinear", "com.microsoft.QuantizeLinear"), (1, 2)),
    "QLinearConv": (6, 7),
    "QLinearMatMul": (6, 7),
    "com.microsoft.QGemm": (7, 8),
    **dict.fromkeys(("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul"), (6, 7)),
    **{
        f"com.microsoft.QLinear{name}": (3, 4)
        for name in ("AveragePool", "GlobalAveragePool", "LeakyRelu", "ReduceMean", "Sigmoid", "Softmax")
    },
    "com.microsoft.QLinearConcat": (0, 1),
}
"""Where operators have the scale and the zero point of the integers that they give."""

OPERANDS: Mapping[str, Mapping[int, Places]] = {
    **{name: {0: (1, 2)} for name in ("DequantizeLinear", "com.microsoft.DequantizeLinear")},
    **{name: {0: (1, 2), 3: (4, 5)} for name, places in RESULTS.items() if places in {(6, 7), (7, 8)}},
    **{name: {0: (1, 2)} for name, places in RESULTS.items() if places == (3, 4)},
}
"""Where they have those of the integers that they read, by the place of these."""


def _linear(call: OnnxCall) -> None:
    if call.attribute("block_size", 0):
        return
    single = call.shape(1) is not None and math.prod(call.shape(1) or ()) == 1
    axis = 1 if single else call.axis(int(call.attribute("axis", 1)))
    attributes: dict[str, Attribute] = {"axis": axis}
    call.emit(call.varying(), attributes, call.behind(call.operator))


def quantizations(source: OnnxSource, constants: OnnxConstants) -> dict[str, tuple[Quantization, ...]]:
    """Scale and zero point of integer tensors, by name; of those only that have one for all channels.

    They stand in the nodes in front of a tensor and behind it, not with it. Through operators that only move
    elements they are handed on, in both directions.

    Returns:
        The tensor's own first, then those that other nodes have for the same integers, in contradiction to it.
    """
    found: dict[onnx_ir.Value, Quantization] = {}
    stated: list[tuple[onnx_ir.Value, Quantization]] = []
    nodes = list(source.graph)
    for node in nodes:
        for value, numbers in _stated(node):
            quantization = _read(numbers, constants)
            if quantization is not None and _is_stored(value):
                stated.append((value, quantization))
    moved: dict[onnx_ir.Value, onnx_ir.Value] = {}
    for node in nodes:
        if node.op_type in MOVING and not node.domain and (first := node.inputs[0]) is not None and _is_stored(first):
            moved.update(dict.fromkeys(node.outputs, moved.get(first, first)))
    for value, quantization in stated:
        found.setdefault(moved.get(value, value), quantization)
    others: dict[onnx_ir.Value, dict[Quantization, None]] = {}
    for value, quantization in stated:
        if quantization != found[moved.get(value, value)]:
            others.setdefault(moved.get(value, value), {})[quantization] = None
    values = {*found, *filter(_is_stored, moved)}
    return {
        str(value.name): (found[root], *others.get(root, ()))
        for value in values
        if value in source.variable and (root := moved.get(value, value)) in found
    }


def _stated(node: onnx_ir.Node) -> Iterator[tuple[onnx_ir.Value, Sequence[onnx_ir.Value | None]]]:
    """Tensors whose scale and zero point a node says: of what it gives first."""
    kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    places = RESULTS.get(kind)
    if places is not None and len(node.inputs) > places[0]:
        yield node.outputs[0], node.inputs[places[0] : places[1] + 1]
    for index, (scale, zero) in OPERANDS.get(kind, {}).items():
        if index < len(node.inputs) and (value := node.inputs[index]) is not None:
            yield value, node.inputs[scale : zero + 1]
    if kind == "com.microsoft.QLinearConcat":
        for index in range(2, len(node.inputs), 3):
            if (value := node.inputs[index]) is not None:
                yield value, node.inputs[index + 1 : index + 3]


def _read(numbers: Sequence[onnx_ir.Value | None], constants: OnnxConstants) -> Quantization | None:
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


RULES: Mapping[str, Callable[[OnnxCall], None]] = {
    f"{domain}{name}": _linear for domain in ("", "com.microsoft.") for name in QUANTIZING
}
