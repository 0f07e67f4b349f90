"""Activations and arithmetic: PyTorch's in the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from conrepair.frameworks.torch import dtype_name
from conrepair.graph.layer_graph import Attribute
from conrepair.graph.operators import COMMUTATIVE, FUNCTIONS
from conrepair.networks.torch_call import Rule, TorchCall, TorchPart

__all__ = ["BINARY", "HARD_SIGMOID", "RULES", "SETTINGS", "UNARY", "binary", "operand"]

_WITH_SETTINGS = {"Softplus", "Round"}
UNARY = {
    **{op.lower(): op for op in FUNCTIONS if hasattr(torch.ops.aten, op.lower()) and op not in _WITH_SETTINGS},
    "special_erf": "Erf", "special_expm1": "Expm1", "sgn": "Sign", "logical_not": "Not", "selu": "Selu",
    "silu": "Swish",
}  # fmt: skip
"""Of one tensor; most are called as in the vocabulary."""

BINARY = {
    "add": "Add", "sub": "Sub", "subtract": "Sub", "mul": "Mul", "multiply": "Mul", "maximum": "Max",
    "minimum": "Min", "eq": "Equal", "gt": "Greater", "ge": "GreaterOrEqual", "lt": "Less", "le": "LessOrEqual",
    "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
}  # fmt: skip
SETTINGS = {
    "gelu": ("Gelu", {"approximate": "approximate"}),
    "leaky_relu": ("LeakyRelu", {"alpha": "negative_slope"}),
    "celu": ("Celu", {"alpha": "alpha"}),
    "elu": ("Elu", {"alpha": "alpha"}),
}
"""Operators of one tensor, and arguments by the attribute that they say."""
HARD_SIGMOID = {"alpha": 1 / 6, "beta": 0.5}
_BITWISE = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor", "__and__": "And", "__or__": "Or"}


def _unary(op: str, **settings: Attribute) -> Rule:
    def rule(call: TorchCall) -> TorchPart:
        return TorchPart(op, settings, [operand(call)])

    return rule


def operand(call: TorchCall) -> Any:
    """The only tensor that an operator reads."""
    return call["self"] if call["input"] is None else call["input"]


def _with(op: str, arguments: Mapping[str, str]) -> Rule:
    """A unary operator whose attributes are arguments."""

    def rule(call: TorchCall) -> TorchPart:
        said = {name: call[source] for name, source in arguments.items()}
        attributes = {name: value if isinstance(value, str) else float(value) for name, value in said.items()}
        return TorchPart(op, attributes, [operand(call)])

    return rule


def _elu(call: TorchCall) -> TorchPart | None:
    alpha, scale, input_scale = float(call["alpha"]), float(call["scale"]), call["input_scale"]
    if input_scale != 1:
        return None
    if scale == 1:
        return TorchPart("Elu", {"alpha": alpha}, [call["self"]])
    return TorchPart("Selu", {"alpha": alpha, "gamma": scale}, [call["self"]])


def _softplus(call: TorchCall) -> TorchPart | None:
    return TorchPart("Softplus", {}, [call["self"]]) if call["beta"] == 1 and call["threshold"] >= 20 else None


def _round(call: TorchCall) -> TorchPart | None:
    return None if call["decimals"] else TorchPart("Round", {}, [call["self"]])


def _threshold(call: TorchCall) -> TorchPart | None:
    if call["value"] != 0:
        return None
    threshold = float(call["threshold"])
    return (
        TorchPart("ThresholdedRelu", {"alpha": threshold}, [call["self"]])
        if threshold
        else TorchPart("Relu", {}, [call["self"]])
    )


def _prelu(call: TorchCall) -> TorchPart | None:
    if call.depends(call["weight"]):
        return None
    tail = (1,) * max(call.rank(call["self"]) - 2, 0)
    slope = call.parameter(call["weight"], transform=lambda weight: weight.reshape(-1, *tail))
    return TorchPart("PRelu", {}, [call["self"]], {"slope": slope})


def _clip(call: TorchCall) -> TorchPart | None:
    names = ("min_val", "max_val") if "hardtanh" in call.name else ("min", "max")
    low, high = (call[name] for name in names)
    if not all(limit is None or isinstance(limit, int | float) for limit in (low, high)):
        return None
    limits = (None if limit is None else float(limit) for limit in (low, high))
    return TorchPart("Clip", dict(zip(("min", "max"), limits, strict=True)), [call["self"]])


def binary(op: str) -> Callable[[TorchCall], TorchPart | None]:
    """An operator of two tensors, one of which may be constant; the second may have a factor `alpha`."""

    def rule(call: TorchCall) -> TorchPart | None:
        first, second, alpha = call["self"], call["other"], call["alpha"]
        if alpha is None or alpha == 1:
            return _of_two(call, op, first, second)
        if call.depends(second) or not call.depends(first):
            return None
        scaled = call.operand(second, like=first, transform=lambda value: value * alpha)
        return TorchPart(op, {}, [first], {"operand": scaled})

    return rule


def _of_two(call: TorchCall, op: str, first: Any, second: Any) -> TorchPart:
    """An operator of two values, one of which at least depends on the network's inputs."""
    if call.depends(first) and call.depends(second):
        return TorchPart(op, {}, [first, second])
    if call.depends(first):
        return TorchPart(op, {}, [first], {"operand": call.operand(second, like=first)})
    attributes = {} if op in COMMUTATIVE else {"constant_first": True}
    return TorchPart(op, attributes, [second], {"operand": call.operand(first, like=second)})


def _reversed_difference(call: TorchCall) -> TorchPart | None:
    return _of_two(call, "Sub", call["other"], call["self"]) if call["alpha"] == 1 else None


def _quotient(call: TorchCall) -> TorchPart | None:
    if call["rounding_mode"] is not None or not call.value().dtype.is_floating_point:
        return None
    # What divides whole numbers gives real ones in PyTorch only.
    operands = [value for value in (call["self"], call["other"]) if isinstance(value, torch.fx.Node)]
    if not all(call.value(operand).dtype.is_floating_point for operand in operands):
        return None
    return binary("Div")(call)


def _bitwise(op: str) -> Rule:
    def rule(call: TorchCall) -> TorchPart | None:
        return binary(op)(call) if call.value().dtype is torch.bool else None

    return rule


def _power(call: TorchCall) -> TorchPart:
    return _of_two(call, "Pow", call["self"], call["exponent"])


def _cast(call: TorchCall) -> TorchPart:
    given = call["self"]
    before, after = call.value(given).dtype, call.value().dtype
    return (
        TorchPart("Identity", {}, [given])
        if before == after
        else TorchPart("Cast", {"to": dtype_name(after)}, [given])
    )


def _where(call: TorchCall) -> TorchPart | None:
    roles = {"condition": call["condition"], "x": call["self"], "y": call["other"]}
    if roles["x"] is None or roles["y"] is None:
        return None
    return _choice(call, roles)


def _masked(call: TorchCall) -> TorchPart | None:
    return _choice(call, {"condition": call["mask"], "x": call["value"], "y": call["self"]})


def _choice(call: TorchCall, roles: Mapping[str, Any]) -> TorchPart:
    return TorchPart("Where", {}, *call.sorted_by_role(roles))


RULES: Mapping[str, Rule] = {
    **{name: _unary(op) for name, op in UNARY.items()},
    **{name: binary(op) for name, op in BINARY.items()},
    **{name: _bitwise(op) for name, op in _BITWISE.items()},
    "relu6": _unary("Clip", min=0.0, max=6.0),
    "hardsigmoid": _unary("HardSigmoid", **HARD_SIGMOID),
    **{name: _with(op, arguments) for name, (op, arguments) in SETTINGS.items()},
    "elu": _elu,
    "hardshrink": _with("Shrink", {"lambd": "lambd"}),
    "softshrink": _with("Shrink", {"lambd": "lambd", "bias": "lambd"}),
    "softplus": _softplus,
    "round": _round,
    "threshold": _threshold,
    **dict.fromkeys(("prelu", "_prelu_kernel"), _prelu),
    **dict.fromkeys(("hardtanh", "clamp", "clip", "clamp_min", "clamp_max"), _clip),
    "rsub": _reversed_difference,
    **dict.fromkeys(("div", "divide", "true_divide"), _quotient),
    "pow": _power,
    **dict.fromkeys(("to", "_to_copy", "type_as"), _cast),
    "where": _where,
    "masked_fill": _masked,
}
