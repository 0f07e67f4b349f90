"""TFLite's operators and the vocabulary's: read from here, written from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from conrepair.formats.networks.parts import REDUCTIONS as ALONG_AXES
from conrepair.formats.networks.parts import LayerPart, Rules
from conrepair.formats.tensorflow.read import shared
from conrepair.formats.tensorflow.read.convolution import convolution, pooling, transposed_convolution
from conrepair.formats.tflite.load.screening import names_of
from conrepair.formats.tflite.read.linear import fully_connected, lstm, unit_norm
from conrepair.formats.tflite.read.operator import OperatorView, native
from conrepair.ground.graph.layer_graph import Attribute, Parameter
from conrepair.ground.graph.operators import SOFTMAX


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def _called(names: Mapping[str, Any]) -> dict[str, Any]:
    """What TFLite has of TensorFlow's operators, by its own names, which are the same in capitals: ARG_MAX."""
    folded = {_folded(name): item for name, item in names.items()}
    return {kind: folded[_folded(kind)] for kind in names_of("BuiltinOperator").values() if _folded(kind) in folded}


_UNARY: Mapping[str, str] = {**_called(shared.UNARY), "LOGISTIC": "Sigmoid"}
"""Of one number, without options that matter."""

BINARY: Mapping[str, str] = {**_called(shared.BINARY), "BITWISE_XOR": "Xor"}
"""Of two numbers."""

REDUCTIONS: Mapping[str, str] = _called({**ALONG_AXES, **{op: op for op in ALONG_AXES.values()}})
"""Along axes that a constant holds."""

POOLS: Mapping[str, str] = {"MAX_POOL_2D": "MaxPool", "AVERAGE_POOL_2D": "AveragePool"}
"""Attributes of windows: strides, dilations, pads."""

_ALIKE = ("Cast", "Gelu", "LeakyRelu", *SOFTMAX)
NAMES: Mapping[str, str] = {
    op: kind
    for names in (_UNARY, BINARY, REDUCTIONS, POOLS, _called({op: op for op in _ALIKE}))
    for kind, op in names.items()
}
"""TFLite's name by the vocabulary's."""

BOUNDS: Mapping[str, Mapping[str, Attribute]] = {
    "RELU6": {"min": 0.0, "max": 6.0},
    "RELU_N1_TO_1": {"min": -1.0, "max": 1.0},
    "RELU_0_TO_1": {"min": 0.0, "max": 1.0},
}
"""Operators that keep numbers between two bounds, with these."""

FUSED: Mapping[int, tuple[str, Mapping[str, Attribute]]] = {
    1: ("Relu", {}),
    2: ("Clip", BOUNDS["RELU_N1_TO_1"]),
    3: ("Clip", BOUNDS["RELU6"]),
    4: ("Tanh", {}),
}
"""Operator and attributes by `ActivationFunctionType`."""

RECURRENT = frozenset(
    {"LSTM", "RNN", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"}
    | {"BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"}
)
"""Operators whose fused activation is inside of the recurrence."""


_RULES = Rules(_called(shared.RULES))
_RULES.named(_UNARY, shared.fixed)
_RULES.named(BINARY, shared.binary)
_RULES.of("Shape", "SHAPE")(shared.fixed)
_RULES.of("Where", "SELECT")(shared.where)
_RULES.of("Slice", "REVERSE_V2")(shared.backwards)
_RULES.of("Conv", "DEPTHWISE_CONV_2D")(convolution)
_RULES.of("ConvTranspose", "TRANSPOSE_CONV", "CONV_3D_TRANSPOSE")(transposed_convolution)
_RULES.named(POOLS, pooling)
_RULES.of("MatMul", "FULLY_CONNECTED")(fully_connected)
_RULES.of("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")(lstm)
_RULES.of("LRN", "LOCAL_RESPONSE_NORMALIZATION")(shared.local_response)
_RULES.of("LpNormalization", "L2_NORMALIZATION")(unit_norm)
_RULES.named(REDUCTIONS, shared.reduction)
for _kind, _bounds in BOUNDS.items():
    _RULES.of("Clip", _kind)(partial(shared.fixed, attributes=_bounds))


def _of_two(op: str, view: OperatorView, *, first: str) -> list[LayerPart]:
    """An operator of what another one makes of two tensors."""
    return [*shared.binary(first, view), LayerPart(op)]


_RULES.of("Square", "SQUARED_DIFFERENCE")(partial(_of_two, first="Sub"))
_RULES.of("Not", "NOT_EQUAL")(partial(_of_two, first="Equal"))


@_RULES.of("PRelu", "PRELU")
def _prelu(op: str, view: OperatorView) -> list[LayerPart]:
    return [LayerPart(op, {}, {"slope": view.parameter(1)})]


@_RULES.of("Gelu", "GELU")
def _gelu(op: str, view: OperatorView) -> list[LayerPart]:
    approximate = view.options is not None and view.options.approximate
    return [LayerPart(op, {"approximate": "tanh" if approximate else "none"})]


@_RULES.of("Softmax", "SOFTMAX")
def _softmax(op: str, view: OperatorView) -> list[LayerPart]:
    if view.option("beta") != 1:
        raise ValueError("with a temperature")
    return shared.along_last(op, view)


@_RULES.of("QuantizeLinear", "QUANTIZE")
def _quantize(op: str, view: OperatorView) -> list[LayerPart]:
    return _scaled(op, view.scales(view.outputs[0]))


@_RULES.of("DequantizeLinear", "DEQUANTIZE")
def _dequantize(op: str, view: OperatorView) -> list[LayerPart]:
    scales = view.scales(view.inputs[0])
    return _RULES["CAST"](view) if scales is None else _scaled(op, scales)


def _scaled(op: str, scales: tuple[float, int] | None) -> list[LayerPart]:
    if scales is None:
        raise ValueError("without a scale")
    scale, zero_point = np.array(scales[0], np.float32), np.array(scales[1], np.int64)
    parameters = {
        "scale": Parameter("", (), "float32", lambda: scale.copy()),
        "zero_point": Parameter("", (), "int64", lambda: zero_point.copy()),
    }
    return [LayerPart(op, {"axis": 1}, parameters)]


@_RULES.of("Concat", "CONCATENATION")
def _concatenation(op: str, view: OperatorView) -> list[LayerPart]:
    return shared.concatenation(op, view, count=len(view.inputs), axis=view.axis(view.option("axis")))


@_RULES.of("Gather", "GATHER")
def _gather(op: str, view: OperatorView) -> list[LayerPart]:
    if view.option("batch_dims"):
        raise ValueError("of each batch its own")
    return shared.gathered(op, view, view.option("axis"))


@_RULES.of("Gather", "EMBEDDING_LOOKUP")
def _embedding(op: str, view: OperatorView) -> list[LayerPart]:
    return [LayerPart(op, {"axis": 0}, {"table": view.parameter(1)})]


def _of_known_size(rule: Callable[[Any], list[LayerPart]], view: OperatorView) -> list[LayerPart]:
    """The rule for an operator whose result has a size; where only running it tells, an operand says the shape."""
    view.result_sizes()
    return rule(view)


for _kind in ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "BROADCAST_TO"):
    _RULES[_kind] = partial(_of_known_size, _RULES[_kind])


@_RULES.of("Slice", "STRIDED_SLICE")
def _strided_slice(op: str, view: OperatorView) -> list[LayerPart]:
    return shared.strided_slice(op, view, relative=bool(view.option("offset")))


def parts_of(view: OperatorView) -> list[LayerPart]:
    """Take an operator apart; one whose sizes aren't known, or settings computed, stays as it is."""
    parts = _RULES.parts(view.kind, view) or [native(view)]
    activation = getattr(view.options, "fusedActivationFunction", 0)
    if activation in FUSED and view.kind not in RECURRENT:
        parts.append(LayerPart(*FUSED[activation]))
    return parts
