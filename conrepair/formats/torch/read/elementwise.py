"""Activations, arithmetic, and reductions and searches along axes: PyTorch's in the vocabulary."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from conrepair.formats.networks.parts import Rules
from conrepair.formats.torch.load.framework import dtype_name
from conrepair.formats.torch.read.call import TorchCall, TorchPart, axis
from conrepair.ground.graph.layer_graph import Attribute
from conrepair.ground.graph.operators import COMMUTATIVE, FUNCTIONS, LOGICAL

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
    **{f"logical_{op.lower()}": op for op in LOGICAL},
}  # fmt: skip
SETTINGS = {
    "gelu": ("Gelu", {"approximate": "approximate"}),
    "leaky_relu": ("LeakyRelu", {"alpha": "negative_slope"}),
    "celu": ("Celu", {"alpha": "alpha"}),
    "elu": ("Elu", {"alpha": "alpha"}),
}
"""Operators of one tensor, and arguments by the attribute that they say."""
REDUCTIONS = {
    "mean": "ReduceMean",
    "sum": "ReduceSum",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
    "prod": "ReduceProd",
}
HARD_SIGMOID = {"alpha": 1 / 6, "beta": 0.5}
_BITWISE = {**{f"bitwise_{op.lower()}": op for op in LOGICAL}, "__and__": "And", "__or__": "Or"}


RULES = Rules()


def operand(call: TorchCall) -> Any:
    """The only tensor that an operator reads."""
    return call["self"] if call["input"] is None else call["input"]


def _unary(op: str, call: TorchCall, /, **settings: Attribute) -> TorchPart:
    return TorchPart(op, settings, [operand(call)])


def _with(op: str, call: TorchCall, /, **arguments: str) -> TorchPart:
    """A unary operator whose attributes are arguments."""
    said = {name: call[source] for name, source in arguments.items()}
    attributes = {name: value if isinstance(value, str) else float(value) for name, value in said.items()}
    return TorchPart(op, attributes, [operand(call)])


RULES.named(UNARY, _unary)
RULES.of("Clip", "relu6")(partial(_unary, min=0.0, max=6.0))
RULES.of("HardSigmoid", "hardsigmoid")(partial(_unary, **HARD_SIGMOID))
for _name, (_op, _arguments) in SETTINGS.items():
    RULES.of(_op, _name)(partial(_with, **_arguments))
RULES.of("Shrink", "hardshrink")(partial(_with, lambd="lambd"))
RULES.of("Shrink", "softshrink")(partial(_with, lambd="lambd", bias="lambd"))


@RULES.of("Elu", "elu")
def _elu(op: str, call: TorchCall) -> TorchPart | None:
    alpha, scale, input_scale = float(call["alpha"]), float(call["scale"]), call["input_scale"]
    if input_scale != 1:
        return None
    if scale == 1:
        return TorchPart(op, {"alpha": alpha}, [call["self"]])
    return TorchPart("Selu", {"alpha": alpha, "gamma": scale}, [call["self"]])


@RULES.of("Softplus", "softplus")
def _softplus(op: str, call: TorchCall) -> TorchPart | None:
    return TorchPart(op, {}, [call["self"]]) if call["beta"] == 1 and call["threshold"] >= 20 else None


@RULES.of("Round", "round")
def _round(op: str, call: TorchCall) -> TorchPart | None:
    return None if call["decimals"] else TorchPart(op, {}, [call["self"]])


@RULES.of("Relu", "threshold")
def _threshold(op: str, call: TorchCall) -> TorchPart | None:
    if call["value"] != 0:
        return None
    if threshold := float(call["threshold"]):
        return TorchPart("ThresholdedRelu", {"alpha": threshold}, [call["self"]])
    return TorchPart(op, {}, [call["self"]])


@RULES.of("PRelu", "prelu", "_prelu_kernel")
def _prelu(op: str, call: TorchCall) -> TorchPart | None:
    if call.depends(call["weight"]):
        return None
    tail = (1,) * max(call.rank(call["self"]) - 2, 0)
    slope = call.parameter(call["weight"], transform=lambda weight: weight.reshape(-1, *tail))
    return TorchPart(op, {}, [call["self"]], {"slope": slope})


@RULES.of("Clip", "hardtanh", "clamp", "clip", "clamp_min", "clamp_max")
def _clip(op: str, call: TorchCall) -> TorchPart | None:
    names = ("min_val", "max_val") if "hardtanh" in call.name else ("min", "max")
    low, high = (call[name] for name in names)
    if not all(limit is None or isinstance(limit, int | float) for limit in (low, high)):
        return None
    limits = (None if limit is None else float(limit) for limit in (low, high))
    return TorchPart(op, dict(zip(("min", "max"), limits, strict=True)), [call["self"]])


def _binary(op: str, call: TorchCall) -> TorchPart | None:
    """An operator of two tensors, one of which may be constant; the second may have a factor `alpha`."""
    first, second, alpha = call["self"], call["other"], call["alpha"]
    if alpha is None or alpha == 1:
        return _of_two(call, op, first, second)
    if call.depends(second) or not call.depends(first):
        return None
    scaled = call.operand(second, like=first, transform=lambda value: value * alpha)
    return TorchPart(op, {}, [first], {"operand": scaled})


RULES.named(BINARY, _binary)


def _of_two(call: TorchCall, op: str, first: Any, second: Any) -> TorchPart:
    """An operator of two values, one of which at least depends on the network's inputs."""
    if call.depends(first) and call.depends(second):
        return TorchPart(op, {}, [first, second])
    if call.depends(first):
        return TorchPart(op, {}, [first], {"operand": call.operand(second, like=first)})
    attributes = {} if op in COMMUTATIVE else {"constant_first": True}
    return TorchPart(op, attributes, [second], {"operand": call.operand(first, like=second)})


@RULES.of("Sub", "rsub")
def _reversed_difference(op: str, call: TorchCall) -> TorchPart | None:
    return _of_two(call, op, call["other"], call["self"]) if call["alpha"] == 1 else None


@RULES.of("Div", "div", "divide", "true_divide")
def _quotient(op: str, call: TorchCall) -> TorchPart | None:
    if call["rounding_mode"] is not None or not call.value().dtype.is_floating_point:
        return None
    # What divides whole numbers gives real ones in PyTorch only.
    operands = [value for value in (call["self"], call["other"]) if isinstance(value, torch.fx.Node)]
    if not all(call.value(operand).dtype.is_floating_point for operand in operands):
        return None
    return _binary(op, call)


def _bitwise(op: str, call: TorchCall) -> TorchPart | None:
    return _binary(op, call) if call.value().dtype is torch.bool else None


RULES.named(_BITWISE, _bitwise)


@RULES.of("Pow", "pow")
def _power(op: str, call: TorchCall) -> TorchPart:
    return _of_two(call, op, call["self"], call["exponent"])


@RULES.of("Cast", "to", "_to_copy", "type_as")
def _cast(op: str, call: TorchCall) -> TorchPart:
    given = call["self"]
    before, after = call.value(given).dtype, call.value().dtype
    return (
        TorchPart("Identity", {}, [given]) if before == after else TorchPart(op, {"to": dtype_name(after)}, [given])
    )


@RULES.of("Where", "where", "masked_fill")
def _where(op: str, call: TorchCall) -> TorchPart | None:
    names = ("condition", "self", "other") if call.name == "where" else ("mask", "value", "self")
    roles = {role: call[name] for role, name in zip(("condition", "x", "y"), names, strict=True)}
    return None if None in (roles["x"], roles["y"]) else TorchPart(op, {}, *call.sorted_by_role(roles))


def _reduction(op: str, call: TorchCall) -> TorchPart | None:
    if call["dtype"] is not None and call["dtype"] != call.value(call["self"]).dtype:
        return None
    return TorchPart(op, {"axes": _axes(call), "keepdims": bool(call["keepdim"])}, [call["self"]])


RULES.named(REDUCTIONS, _reduction)


def _axes(call: TorchCall) -> tuple[int, ...]:
    rank, wanted = call.rank(call["self"]), call["dim"]
    if wanted is None or wanted == []:
        return tuple(range(rank))
    places = wanted if isinstance(wanted, list | tuple) else [wanted]
    return tuple(sorted(axis(place, rank) for place in places))


@RULES.of("ReduceL2", "linalg_vector_norm", "norm")
def _norm(op: str, call: TorchCall) -> TorchPart | None:
    order = call["ord"] if call["p"] is None else call["p"]
    if isinstance(order, torch.fx.Node) or (order is not None and float(order) != 2):
        return None
    return _reduction(op, call)


@RULES.of("Max", "max")
@RULES.of("Min", "min")
def _extremum(op: str, call: TorchCall) -> TorchPart | None:
    """The largest values along an axis, or of two tensors; with their positions it's another operator."""
    if call["other"] is not None:
        return _binary(op, call)
    if isinstance(call.value(), tuple | list) and call.is_read(1):
        return None
    return _reduction(f"Reduce{op}", call)


@RULES.of("ArgMax", "argmax")
@RULES.of("ArgMin", "argmin")
def _position(op: str, call: TorchCall) -> TorchPart | None:
    if call["dim"] is None:
        return None
    place = axis(call["dim"], call.rank(call["self"]))
    return TorchPart(op, {"axis": place, "keepdims": bool(call["keepdim"])}, [call["self"]])


@RULES.of("CumSum", "cumsum")
def _cumulative_sum(op: str, call: TorchCall) -> TorchPart | None:
    return TorchPart(op, {"axis": axis(call["dim"], call.rank(call["self"]))}, [call["self"]])
