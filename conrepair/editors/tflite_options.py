"""TFLite's names and options of operators in the neutral vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from conrepair.editors.editor import NotEditableError

__all__ = ["new_options", "options_for"]

_KINDS = {
    "Relu": "RELU",
    "Softmax": "SOFTMAX",
    "Mul": "MUL",
    "Sub": "SUB",
    "Add": "ADD",
    "Sigmoid": "LOGISTIC",
    "Tanh": "TANH",
    "Elu": "ELU",
    "HardSwish": "HARD_SWISH",
    "Gelu": "GELU",
    "LeakyRelu": "LEAKY_RELU",
    "Div": "DIV",
    "Max": "MAXIMUM",
    "Min": "MINIMUM",
    "MaxPool": "MAX_POOL_2D",
    "AveragePool": "AVERAGE_POOL_2D",
    "ReduceMean": "MEAN",
    "ReduceMax": "REDUCE_MAX",
    "ReduceMin": "REDUCE_MIN",
    "ReduceSum": "SUM",
    "LogSoftmax": "LOG_SOFTMAX",
    "Pow": "POW",
    **{
        name: name.upper() for name in ("Exp", "Log", "Sqrt", "Rsqrt", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round")
    },
    **{name: name.upper() for name in ("Sin", "Cos", "Square")},
}
_OPTIONS = {
    "MUL": "Mul",
    "SUB": "Sub",
    "ADD": "Add",
    "DIV": "Div",
    "MAXIMUM": "MaximumMinimum",
    "MINIMUM": "MaximumMinimum",
    "SOFTMAX": "Softmax",
    "GELU": "Gelu",
    "LEAKY_RELU": "LeakyRelu",
    "HARD_SWISH": "HardSwish",
    "GATHER": "Gather",
    "TRANSPOSE": "Transpose",
    "CAST": "Cast",
    "QUANTIZE": "Quantize",
    "DEQUANTIZE": "Dequantize",
    "POW": "Pow",
    "EXP": "Exp",
    "COS": "Cos",
    "NEG": "Neg",
    "ABS": "Abs",
    "SIGN": "Sign",
    "SQUARE": "Square",
    "LOG_SOFTMAX": "LogSoftmax",
    "FULLY_CONNECTED": "FullyConnected",
    "BATCH_MATMUL": "BatchMatMul",
    "CONV_2D": "Conv2D",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2D",
    **dict.fromkeys(("MAX_POOL_2D", "AVERAGE_POOL_2D"), "Pool2D"),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"), "Reducer"),
    "CONCATENATION": "Concatenation",
    "PACK": "Pack",
    "STRIDED_SLICE": "StridedSlice",
    "RESHAPE": "Reshape",
    "PAD": "Pad",
    "PADV2": "PadV2",
    "MIRROR_PAD": "MirrorPad",
}
_SLOPE = 0.01


def options_for(operator: str, attributes: Mapping[str, Any]) -> tuple[str, Any, int]:
    """A TFLite operator's name, its options, and their type.

    Raises:
        NotEditableError: if there is none.
    """
    kind = _KINDS.get(operator)
    if kind is None:
        raise NotEditableError(f"TFLite has no {operator}")
    options, number = new_options(kind)
    if kind == "SOFTMAX":
        options.beta = 1.0
    elif kind == "LEAKY_RELU":
        options.alpha = float(attributes.get("alpha", _SLOPE))
    elif kind == "GELU":
        options.approximate = attributes.get("approximate") == "tanh"
    elif kind == "ELU" and attributes.get("alpha", 1.0) != 1.0:
        raise NotEditableError("TFLite's ELU has no alpha")
    return kind, options, number


def new_options(kind: str) -> tuple[Any, int]:
    """Empty options of a TFLite operator, and their type."""
    name = _OPTIONS.get(kind)
    if name is None:
        return None, schema.BuiltinOptions.NONE
    return getattr(schema, f"{name}OptionsT")(), getattr(schema.BuiltinOptions, f"{name}Options")
