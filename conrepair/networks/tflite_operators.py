"""TFLite's operators and the vocabulary's: read from here, written from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from conrepair.graph.layer_graph import Attribute, Parameter
from conrepair.graph.operators import OPERATORS
from conrepair.networks import tensorflow_shape as shape
from conrepair.networks import tensorflow_view as elementwise
from conrepair.networks.parts import LayerPart
from conrepair.networks.tensorflow_convolution import convolution, matrix_product, pooling, transposed_convolution
from conrepair.networks.tflite_linear import fully_connected, lstm, unit_norm
from conrepair.networks.tflite_operator import OperatorView, native

__all__ = ["BINARY", "BOUNDS", "FUSED", "NAMES", "POOLS", "RECURRENT", "REDUCTIONS", "parts_of"]

_OF_ONE = ("EXP", "LOG", "SQRT", "RSQRT", "SQUARE", "NEG", "ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "SIN", "COS")

_UNARY: Mapping[str, str] = {
    **{kind: kind.capitalize() for kind in ("RELU", "TANH", "ELU", *_OF_ONE)},
    "LOGISTIC": "Sigmoid",
    "HARD_SWISH": "HardSwish",
    "LOGICAL_NOT": "Not",
}
"""Of one number, without options that matter."""

BINARY: Mapping[str, str] = {
    **{kind: kind.capitalize() for kind in ("ADD", "SUB", "MUL", "DIV", "POW", "EQUAL", "GREATER", "LESS")},
    "MINIMUM": "Min",
    "MAXIMUM": "Max",
    "FLOOR_MOD": "Mod",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS_EQUAL": "LessOrEqual",
    "LOGICAL_AND": "And",
    "LOGICAL_OR": "Or",
    "BITWISE_XOR": "Xor",
}
"""Of two numbers."""

_ALONG_LAST: Mapping[str, str] = {"SOFTMAX": "Softmax", "LOG_SOFTMAX": "LogSoftmax"}

REDUCTIONS: Mapping[str, str] = {
    "MEAN": "ReduceMean",
    "SUM": "ReduceSum",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd",
}
"""Along axes that a constant holds."""

POOLS: Mapping[str, str] = {"MAX_POOL_2D": "MaxPool", "AVERAGE_POOL_2D": "AveragePool"}
"""Of windows."""

NAMES: Mapping[str, str] = {
    **{op: kind for names in (_UNARY, BINARY, _ALONG_LAST, REDUCTIONS, POOLS) for kind, op in names.items()},
    "Cast": "CAST",
    "Gelu": "GELU",
    "LeakyRelu": "LEAKY_RELU",
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


def _then(first: str, second: str) -> elementwise.Rule:
    return lambda view: [*elementwise.binary(first)(view), LayerPart(second)]


def _prelu(view: OperatorView) -> list[LayerPart]:
    return [LayerPart("PRelu", {}, {"slope": view.parameter(1)})]


def _gelu(view: OperatorView) -> list[LayerPart]:
    approximate = view.options is not None and view.options.approximate
    return [LayerPart("Gelu", {"approximate": "tanh" if approximate else "none"})]


def _softmax(view: OperatorView) -> list[LayerPart]:
    if view.option("beta") != 1:
        raise ValueError("with a temperature")
    return elementwise.along_last("Softmax")(view)


def _quantize(view: OperatorView) -> list[LayerPart]:
    return _scaled("QuantizeLinear", view.scales(view.outputs[0]))


def _dequantize(view: OperatorView) -> list[LayerPart]:
    scales = view.scales(view.inputs[0])
    return elementwise.cast(view) if scales is None else _scaled("DequantizeLinear", scales)


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
    return shape.concatenation(view, len(view.inputs), view.axis(view.option("axis")))


def _gather(view: OperatorView) -> list[LayerPart]:
    if view.option("batch_dims"):
        raise ValueError("of each batch its own")
    return shape.gathered(view, view.option("axis"))


def _embedding(view: OperatorView) -> list[LayerPart]:
    return [LayerPart("Gather", {"axis": 0}, {"table": view.parameter(1)})]


def _of_known_size(rule: elementwise.Rule) -> elementwise.Rule:
    """The rule for an operator whose result has a size; where only running it tells, an operand says the shape."""

    def known(view: elementwise.TensorflowView) -> list[LayerPart]:
        view.result_sizes()
        return rule(view)

    return known


_RULES: Mapping[str, Callable[[OperatorView], list[LayerPart]]] = {
    **{kind: elementwise.fixed(op, OPERATORS[op].attributes) for kind, op in _UNARY.items()},
    **{kind: elementwise.binary(op) for kind, op in BINARY.items()},
    **{kind: elementwise.fixed("Clip", bounds) for kind, bounds in BOUNDS.items()},
    "SQUARED_DIFFERENCE": _then("Sub", "Square"),
    "NOT_EQUAL": _then("Equal", "Not"),
    "LEAKY_RELU": elementwise.leaky,
    "PRELU": _prelu,
    "GELU": _gelu,
    "SOFTMAX": _softmax,
    "LOG_SOFTMAX": elementwise.along_last("LogSoftmax"),
    **dict.fromkeys(("SELECT", "SELECT_V2"), elementwise.where),
    "CAST": elementwise.cast,
    "QUANTIZE": _quantize,
    "DEQUANTIZE": _dequantize,
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "CONV_3D"), convolution),
    **dict.fromkeys(("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE"), transposed_convolution),
    "MAX_POOL_2D": pooling("MaxPool"),
    "AVERAGE_POOL_2D": pooling("AveragePool", count_include_pad=False),
    "FULLY_CONNECTED": fully_connected,
    "BATCH_MATMUL": matrix_product("adj_x", "adj_y"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
    "LOCAL_RESPONSE_NORMALIZATION": elementwise.local_response,
    "L2_NORMALIZATION": unit_norm,
    **{kind: shape.reduction(op) for kind, op in REDUCTIONS.items()},
    "ARG_MAX": shape.place("ArgMax"),
    "ARG_MIN": shape.place("ArgMin"),
    "CUMSUM": shape.cumulative_sum,
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _of_known_size(shape.reshaped)),
    "BROADCAST_TO": _of_known_size(shape.expanded),
    "TRANSPOSE": shape.transposed,
    **dict.fromkeys(("PAD", "PADV2"), shape.padded),
    "MIRROR_PAD": shape.mirrored,
    "SLICE": shape.sliced,
    "STRIDED_SLICE": lambda view: shape.strided_slice(view, relative=bool(view.option("offset"))),
    "REVERSE_V2": shape.reversed_,
    "SPLIT": shape.split(axis=0, data=1),
    "SPLIT_V": shape.split(axis=2, data=0),
    "CONCATENATION": _concatenation,
    "PACK": shape.stacked,
    "TILE": shape.tiled,
    "GATHER": _gather,
    "EMBEDDING_LOOKUP": _embedding,
    "RESIZE_BILINEAR": shape.resized("linear"),
    "RESIZE_NEAREST_NEIGHBOR": shape.resized("nearest"),
    "DEPTH_TO_SPACE": shape.block_mover("DepthToSpace", mode="DCR"),
    "SPACE_TO_DEPTH": shape.block_mover("SpaceToDepth"),
    "SPACE_TO_BATCH_ND": shape.batches("SpaceToBatch", "pads"),
    "BATCH_TO_SPACE_ND": shape.batches("BatchToSpace", "crops"),
    "SHAPE": elementwise.fixed("Shape"),
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
