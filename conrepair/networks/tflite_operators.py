"""TFLite's operators and the vocabulary's: read from here, written from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conrepair.frameworks.screening.tflite import names_of
from conrepair.graph.layer_graph import Attribute, Parameter
from conrepair.networks import tensorflow_shared as shared
from conrepair.networks.parts import LayerPart
from conrepair.networks.tensorflow_convolution import convolution, pooling, transposed_convolution
from conrepair.networks.tensorflow_view import Rule, TensorflowView
from conrepair.networks.tflite_linear import fully_connected, lstm, unit_norm
from conrepair.networks.tflite_operator import OperatorView, native

__all__ = ["BINARY", "BOUNDS", "FUSED", "NAMES", "POOLS", "RECURRENT", "REDUCTIONS", "parts_of"]


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

REDUCTIONS: Mapping[str, str] = _called({**shared.REDUCTIONS, **{op: op for op in shared.REDUCTIONS.values()}})
"""Along axes that a constant holds."""

POOLS: Mapping[str, str] = {"MAX_POOL_2D": "MaxPool", "AVERAGE_POOL_2D": "AveragePool"}
"""Of windows."""

_ALIKE = ("Cast", "Gelu", "LeakyRelu", "LogSoftmax", "Softmax")
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


def _then(first: str, second: str) -> Rule:
    return lambda view: [*shared.binary(first)(view), LayerPart(second)]


def _prelu(view: OperatorView) -> list[LayerPart]:
    return [LayerPart("PRelu", {}, {"slope": view.parameter(1)})]


def _gelu(view: OperatorView) -> list[LayerPart]:
    approximate = view.options is not None and view.options.approximate
    return [LayerPart("Gelu", {"approximate": "tanh" if approximate else "none"})]


def _softmax(view: OperatorView) -> list[LayerPart]:
    if view.option("beta") != 1:
        raise ValueError("with a temperature")
    return shared.along_last("Softmax")(view)


def _quantize(view: OperatorView) -> list[LayerPart]:
    return _scaled("QuantizeLinear", view.scales(view.outputs[0]))


def _dequantize(view: OperatorView) -> list[LayerPart]:
    scales = view.scales(view.inputs[0])
    return shared.cast(view) if scales is None else _scaled("DequantizeLinear", scales)


def _scaled(op: str, scales: tuple[float, int] | None) -> list[LayerPart]:
    if scales is None:
        raise ValueError("without a scale")
    scale, zero_point = np.array(scales[0], np.float32), np.array(scales[1], np.int64)
    parameters = {
        "scale": Parameter("", (), "float32", lambda: scale.copy()),
        "zero_point": Parameter("", (), "int64", lambda: zero_point.copy()),
    }
    return [LayerPart(op, {"axis": 1}, parameters)]


def _concatenation(view: OperatorView) -> list[LayerPart]:
    return shared.concatenation(view, len(view.inputs), view.axis(view.option("axis")))


def _gather(view: OperatorView) -> list[LayerPart]:
    if view.option("batch_dims"):
        raise ValueError("of each batch its own")
    return shared.gathered(view, view.option("axis"))


def _embedding(view: OperatorView) -> list[LayerPart]:
    return [LayerPart("Gather", {"axis": 0}, {"table": view.parameter(1)})]


def _of_known_size(rule: Rule) -> Rule:
    """The rule for an operator whose result has a size; where only running it tells, an operand says the shape."""

    def known(view: TensorflowView) -> list[LayerPart]:
        view.result_sizes()
        return rule(view)

    return known


_RULES: Mapping[str, Callable[[OperatorView], list[LayerPart]]] = {
    **_called(shared.RULES),
    "LOGISTIC": shared.fixed("Sigmoid"),
    "BITWISE_XOR": shared.binary("Xor"),
    **{kind: shared.fixed("Clip", bounds) for kind, bounds in BOUNDS.items()},
    "SQUARED_DIFFERENCE": _then("Sub", "Square"),
    "NOT_EQUAL": _then("Equal", "Not"),
    "PRELU": _prelu,
    "GELU": _gelu,
    "SOFTMAX": _softmax,
    "SELECT": shared.where,
    "QUANTIZE": _quantize,
    "DEQUANTIZE": _dequantize,
    "DEPTHWISE_CONV_2D": convolution,
    **dict.fromkeys(("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE"), transposed_convolution),
    "MAX_POOL_2D": pooling("MaxPool"),
    "AVERAGE_POOL_2D": pooling("AveragePool", count_include_pad=False),
    "FULLY_CONNECTED": fully_connected,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "LOCAL_RESPONSE_NORMALIZATION": shared.local_response,
    "L2_NORMALIZATION": unit_norm,
    **{kind: shared.reduction(op) for kind, op in REDUCTIONS.items()},
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _of_known_size(shared.reshaped)),
    "BROADCAST_TO": _of_known_size(shared.expanded),
    "STRIDED_SLICE": lambda view: shared.strided_slice(view, relative=bool(view.option("offset"))),
    "REVERSE_V2": shared.backwards,
    "CONCATENATION": _concatenation,
    "GATHER": _gather,
    "EMBEDDING_LOOKUP": _embedding,
    "SHAPE": shared.fixed("Shape"),
}


def parts_of(view: OperatorView) -> list[LayerPart]:
    """Take an operator apart; one whose sizes aren't known, or settings computed, stays as it is."""
    rule = _RULES.get(view.kind)
    try:
        parts = [native(view)] if rule is None else list(rule(view))
    except (KeyError, TypeError, ValueError):
        parts = [native(view)]
    activation = getattr(view.options, "fusedActivationFunction", 0)
    if activation in FUSED and view.kind not in RECURRENT:
        parts.append(LayerPart(*FUSED[activation]))
    return parts
