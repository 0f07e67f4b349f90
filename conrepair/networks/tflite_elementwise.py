"""TFLite's operators on single elements: activations, arithmetic, logic, casts, quantization."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conrepair.graph.layer_graph import Attribute, Parameter
from conrepair.graph.operators import COMMUTATIVE
from conrepair.networks.tflite_operator import ARITHMETIC, FUNCTIONS, OperatorView, Rule, TfliteStep

__all__ = ["BOUNDS", "FUSED", "RULES"]

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

_LOGIC = {
    "FLOOR_MOD": "Mod", "LOGICAL_AND": "And", "LOGICAL_OR": "Or", "BITWISE_XOR": "Xor", "EQUAL": "Equal",
    "GREATER": "Greater", "GREATER_EQUAL": "GreaterOrEqual", "LESS": "Less", "LESS_EQUAL": "LessOrEqual",
}  # fmt: skip


def _step(op: str, attributes: Mapping[str, Attribute] | None = None) -> Rule:
    return lambda view: TfliteStep(op, view.names(0), attributes or {})


def _binary(op: str, then: str | None = None) -> Rule:
    """An operator of two operands, maybe with one of a single operand behind it."""

    def rule(view: OperatorView) -> list[TfliteStep]:
        left, right = view.is_constant(0), view.is_constant(1)
        names = view.names(int(left)) if left or right else view.names(0, 1)
        parameters = {"operand": view.parameter(int(not left))} if left or right else {}
        steps = [TfliteStep(op, names, {"constant_first": left and op not in COMMUTATIVE}, parameters)]
        return [*steps, TfliteStep(then, ("",))] if then else steps

    return rule


def _leaky_relu(view: OperatorView) -> TfliteStep:
    return TfliteStep("LeakyRelu", view.names(0), {"alpha": float(view.options.alpha)})


def _prelu(view: OperatorView) -> TfliteStep | None:
    return TfliteStep("PRelu", view.names(0), {}, {"slope": view.parameter(1)}) if view.is_constant(1) else None


def _gelu(view: OperatorView) -> TfliteStep:
    approximate = "tanh" if view.options is not None and view.options.approximate else "none"
    return TfliteStep("Gelu", view.names(0), {"approximate": approximate})


def _softmax(view: OperatorView) -> TfliteStep | None:
    if view.options.beta != 1:
        return None
    return TfliteStep("Softmax", view.names(0), {"axis": view.rank() - 1})


def _log_softmax(view: OperatorView) -> TfliteStep:
    return TfliteStep("LogSoftmax", view.names(0), {"axis": view.rank() - 1})


def _where(view: OperatorView) -> TfliteStep:
    roles = ("condition", "x", "y")
    return TfliteStep("Where", view.names(), {}, view.optional(**{role: place for place, role in enumerate(roles)}))


def _cast(view: OperatorView) -> TfliteStep:
    to = view.result_dtype()
    return (
        TfliteStep("Identity", view.names(0)) if view.dtype() == to else TfliteStep("Cast", view.names(0), {"to": to})
    )


def _quantize(view: OperatorView) -> TfliteStep | None:
    scales = view.result_scales()
    return TfliteStep("QuantizeLinear", view.names(0), {"axis": 1}, _constants(scales)) if scales else None


def _dequantize(view: OperatorView) -> TfliteStep:
    scales = view.scales()
    if scales is None:
        return _cast(view)
    return TfliteStep("DequantizeLinear", view.names(0), {"axis": 1}, _constants(scales))


def _constants(scales: tuple[float, int]) -> dict[str, Parameter]:
    scale, zero_point = np.array(scales[0], np.float32), np.array(scales[1], np.int64)
    return {
        "scale": Parameter("", (), "float32", lambda: scale.copy()),
        "zero_point": Parameter("", (), "int64", lambda: zero_point.copy()),
    }


RULES: Mapping[str, Rule] = {
    **{kind: _step(op) for kind, op in FUNCTIONS.items()},
    **{kind: _binary(op) for kind, op in {**ARITHMETIC, **_LOGIC}.items()},
    "LOGICAL_NOT": _step("Not"),
    "SQUARED_DIFFERENCE": _binary("Sub", "Square"),
    "NOT_EQUAL": _binary("Equal", "Not"),
    **{kind: _step("Clip", bounds) for kind, bounds in BOUNDS.items()},
    "ELU": _step("Elu", {"alpha": 1.0}),
    "LEAKY_RELU": _leaky_relu,
    "PRELU": _prelu,
    "GELU": _gelu,
    "SOFTMAX": _softmax,
    "LOG_SOFTMAX": _log_softmax,
    "SELECT": _where,
    "SELECT_V2": _where,
    "CAST": _cast,
    "QUANTIZE": _quantize,
    "DEQUANTIZE": _dequantize,
}
