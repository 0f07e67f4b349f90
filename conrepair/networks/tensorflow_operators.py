"""The operators of the neutral graph that each operator of TensorFlow stands for."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from conrepair.graph.layer_graph import Attribute
from conrepair.graph.operators import FUNCTIONS, OPERATORS
from conrepair.networks import tensorflow_convolution, tensorflow_shape
from conrepair.networks.parts import LayerPart
from conrepair.networks.tensorflow_rules import Rule, TensorflowOperation, binary, native_part

__all__ = ["NAMES", "parts_of"]

_COMMUTING = {"AddV2": "Add", "Add": "Add", "Mul": "Mul", "Maximum": "Max", "Minimum": "Min", "Equal": "Equal"}
_ORDERED = {
    "Sub": "Sub",
    "RealDiv": "Div",
    "Div": "Div",
    "Pow": "Pow",
    "FloorMod": "Mod",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "Less": "Less",
    "LessEqual": "LessOrEqual",
}
_LOGICAL = {"LogicalAnd": "And", "LogicalOr": "Or"}
_UNARY = {
    **{name: name for name in (*FUNCTIONS, "Elu", "Selu") if hasattr(tf.raw_ops, name)},
    "Rint": "Round",
    "LogicalNot": "Not",
    "Inv": "Reciprocal",
    **dict.fromkeys(("StopGradient", "PreventGradient", "CheckNumerics", "EnsureShape", "Snapshot"), "Identity"),
}
NAMES = {op: name for name, op in reversed({**_COMMUTING, **_ORDERED, **_LOGICAL, **_UNARY}.items())}
"""TensorFlow's operator for one of the vocabulary that reads one or two tensors; of several, the one to write."""


def _unary(op: str) -> Rule:
    return lambda operation: [LayerPart(op, dict(OPERATORS[op].attributes))]


def _along_last(op: str) -> Rule:
    return lambda operation: [LayerPart(op, {"axis": len(operation.sizes(0)) - 1})]


def _cast(operation: TensorflowOperation) -> list[LayerPart]:
    to = operation.attribute("DstT")
    return [LayerPart("Identity")] if to == operation.attribute("SrcT") else [LayerPart("Cast", {"to": to})]


def _leaky(operation: TensorflowOperation) -> list[LayerPart]:
    return [LayerPart("LeakyRelu", {"alpha": float(operation.attribute("alpha"))})]


def _local_response(operation: TensorflowOperation) -> list[LayerPart]:
    """ONNX's alpha is of the sum over all neighbours, TensorFlow's of each."""
    size = 2 * int(operation.attribute("depth_radius")) + 1
    attributes: dict[str, Attribute] = {
        "alpha": float(operation.attribute("alpha")) * size,
        "beta": float(operation.attribute("beta")),
        "bias": float(operation.attribute("bias")),
        "size": size,
    }
    return [LayerPart("LRN", attributes, channels_last=True)]


_RULES: dict[str, Rule] = {
    **{name: _unary(op) for name, op in _UNARY.items()},
    **{name: binary(op, commutes=True) for name, op in {**_COMMUTING, **_LOGICAL}.items()},
    **{name: binary(op, commutes=False) for name, op in _ORDERED.items()},
    "Softmax": _along_last("Softmax"),
    "LogSoftmax": _along_last("LogSoftmax"),
    "Relu6": lambda operation: [LayerPart("Clip", {"min": 0.0, "max": 6.0})],
    "LeakyRelu": _leaky,
    "Cast": _cast,
    "LRN": _local_response,
    **tensorflow_convolution.RULES,
    **tensorflow_shape.RULES,
}


def parts_of(operation: TensorflowOperation) -> list[LayerPart]:
    """Take an operator apart.

    Returns:
        At least one part; the last one gives the operator's results.
    """
    native = operation.definition.op
    rule = _RULES.get(native)
    parts: list[LayerPart] = []
    if rule is not None:
        # An operator whose sizes aren't known, or settings computed, stays as it is.
        try:
            parts = rule(operation)
        except (KeyError, TypeError, ValueError):
            parts = []
    if not parts:
        parts = [native_part(operation, f"TensorFlow{native}" if native in OPERATORS else native)]
    return [part if part.native else dataclasses.replace(part, native=native) for part in parts]
