"""What TFLite calls operators of the vocabulary, where both are the same function: read this way and written that."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["ARITHMETIC", "FUNCTIONS", "POOLS", "REDUCTIONS", "WRITTEN"]

_SAME = ("EXP", "LOG", "SQRT", "RSQRT", "SQUARE", "NEG", "ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "SIN", "COS")

FUNCTIONS: Mapping[str, str] = {
    **{kind: kind.capitalize() for kind in ("RELU", "TANH", *_SAME)},
    "LOGISTIC": "Sigmoid",
    "HARD_SWISH": "HardSwish",
}
"""Of one number, without options that matter."""

ARITHMETIC: Mapping[str, str] = {
    **{kind: kind.capitalize() for kind in ("ADD", "SUB", "MUL", "DIV", "POW")},
    "MINIMUM": "Min",
    "MAXIMUM": "Max",
}
"""Of two numbers."""

REDUCTIONS: Mapping[str, str] = {
    "MEAN": "ReduceMean",
    "SUM": "ReduceSum",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
}
"""Along axes that a constant holds."""

POOLS: Mapping[str, str] = {"MAX_POOL_2D": "MaxPool", "AVERAGE_POOL_2D": "AveragePool"}
"""Of windows."""

_WITH_OPTIONS = {
    "ELU": "Elu",
    "GELU": "Gelu",
    "LEAKY_RELU": "LeakyRelu",
    "SOFTMAX": "Softmax",
    "LOG_SOFTMAX": "LogSoftmax",
}

WRITTEN: Mapping[str, str] = {
    op: kind for names in (FUNCTIONS, ARITHMETIC, REDUCTIONS, POOLS, _WITH_OPTIONS) for kind, op in names.items()
}
"""Back: TFLite's name by the vocabulary's."""
