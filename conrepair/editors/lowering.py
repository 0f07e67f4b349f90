"""Operators in terms of simpler ones, for formats that don't have them.

Inputs of what a lowering gives are positions: the operation's operands first, then results, in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from conrepair.editors.lowering_recurrent import RECURRENT
from conrepair.editors.lowering_windows import WINDOWS
from conrepair.editors.operation import Operation, Sizes
from conrepair.graph.layer_graph import Attribute
from conrepair.graph.operators import OPERATORS

__all__ = ["CHANNELLED", "lower"]

_FLAT = 2  # axes of a tensor without places
_ERF_ONE = 3.7439211627767994  # where the error function is 1 in float32
_ERF_ABOVE = (
    0.00022905065861350646,
    0.0034082910107109506,
    0.050955695062380861,
    0.18520832239976145,
    1.128379143519084,
)
_ERF_BELOW = (
    *(-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885, 0.014070470171167667),
    *(0.11098505178285362, 0.49746925110067538, 1.0),
)
_LAST_ONLY = ("Softmax", "LogSoftmax")

CHANNELLED = frozenset({"BatchNormalization", "InstanceNormalization", "GroupNormalization", *WINDOWS})
"""Operators that have channels: the first axis behind the batch, or the last one."""

Operations = tuple[Operation, ...]


def lower(operation: Operation, shapes: Sequence[Sizes | None], channels_last: bool) -> Operations | None:
    """One operation as several.

    Args:
        operation: What a format doesn't have.
        shapes: Of its operands, as far as they're known.
        channels_last: Where the format wants the channels.

    Returns:
        The simpler ones; None where there are none.
    """
    rank = None if not shapes or shapes[0] is None else len(shapes[0])
    known = OPERATORS.get(operation.operator)
    if known is not None and not set(operation.attributes) <= set(known.attributes):
        return None
    elsewhere = operation.operator in CHANNELLED and operation.channels_last != channels_last
    if elsewhere and rank is not None and rank > _FLAT:
        return _turned(operation, rank, channels_last)
    if operation.operator in WINDOWS:
        return WINDOWS[operation.operator](operation, shapes)
    if operation.operator in _LAST_ONLY and rank is not None and _axis(operation, rank) != rank - 1:
        return _with_last_axis(operation, rank)
    make = _LOWERINGS.get(operation.operator)
    return None if make is None else make(operation, shapes)


def _do(operator: str, *inputs: int, operand: Any = None, first: bool = False, **attributes: Attribute) -> Operation:
    """An operator without channels; one with a constant where there's an operand."""
    if operand is None:
        return Operation(operator, inputs, attributes)
    constant = {"operand": np.asarray(operand, np.float32)}
    return Operation(operator, inputs, {"constant_first": first, **attributes}, constant)


def _turned(operation: Operation, rank: int, channels_last: bool) -> Operations:
    """With the channels where the format wants them."""
    last, first = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
    there, back = (last, first) if channels_last else (first, last)
    inner = Operation(operation.operator, (1,), operation.attributes, operation.parameters, channels_last)
    return _do("Transpose", 0, perm=there), inner, _do("Transpose", 2, perm=back)


def _axis(operation: Operation, rank: int) -> int:
    return operation.integer("axis", -1) % rank


def _with_last_axis(operation: Operation, rank: int) -> Operations:
    axis = _axis(operation, rank)
    perm = tuple(rank - 1 if place == axis else axis if place == rank - 1 else place for place in range(rank))
    inner = Operation(operation.operator, (1,), {**operation.attributes, "axis": rank - 1})
    return _do("Transpose", 0, perm=perm), inner, _do("Transpose", 2, perm=perm)


# --- layers ---------------------------------------------------------------------------------------------------


def _product(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    """A bias, and a constant on the left, as nodes of their own."""
    if "bias" not in operation.parameters:
        return None
    rest = {role: array for role, array in operation.parameters.items() if role != "bias"}
    places = tuple(range(len(shapes)))
    product = Operation("MatMul", places, operation.attributes, rest)
    return product, _do("Add", len(places), operand=operation.parameters["bias"])


def _batch_normalization(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    numbers = {role: array.astype(np.float64) for role, array in operation.parameters.items()}
    if shapes[0] is None or "variance" not in numbers:
        return None
    factor = numbers.get("scale", 1.0) / np.sqrt(numbers["variance"] + operation.real("epsilon", 1e-5))
    offset = numbers.get("bias", 0.0) - numbers["mean"] * factor
    shape = _along_channels(operation, len(shapes[0]))
    return _do("Mul", 0, operand=factor.reshape(shape)), _do("Add", 1, operand=np.reshape(offset, shape))


def _layer_normalization(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    axes = operation.attributes.get("axes")
    if not isinstance(axes, tuple):
        return None
    return _normalized(operation, axes, lambda array: array)


def _instance_normalization(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    if shapes[0] is None:
        return None
    rank = len(shapes[0])
    axes = tuple(range(1, rank - 1)) if operation.channels_last else tuple(range(2, rank))
    shape = _along_channels(operation, rank)
    return _normalized(operation, axes, lambda array: array.reshape(shape))


def _group_normalization(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    """The groups as channels of their own, normalized without parameters; then each channel's scale and bias."""
    shape, groups = shapes[0] if shapes else None, operation.integer("groups")
    if shape is None or operation.channels_last or None in shape[1:]:
        return None
    along = _along_channels(operation, len(shape))
    inner = {"scale": np.ones(groups, np.float32), "bias": np.zeros(groups, np.float32)}
    found = [
        _do("Reshape", 0, shape=(-1, groups, math.prod(int(size or 0) for size in shape[1:]) // groups)),
        Operation("InstanceNormalization", (1,), {"epsilon": operation.real("epsilon", 1e-5)}, inner),
        _do("Reshape", 2, shape=(-1, *(int(size or 0) for size in shape[1:]))),
    ]
    return (*found, *_scaled(operation, len(found), lambda array: array.reshape(along)))


def _normalized(operation: Operation, axes: tuple[Any, ...], spread: Callable[[Any], Any]) -> Operations:
    found = [
        _do("ReduceMean", 0, axes=axes, keepdims=True),
        _do("Sub", 0, 1),
        _do("Mul", 2, 2),
        _do("ReduceMean", 3, axes=axes, keepdims=True),
        _do("Add", 4, operand=operation.real("epsilon", 1e-5)),
        _do("Sqrt", 5),
        _do("Div", 2, 6),
    ]
    return (*found, *_scaled(operation, len(found), spread))


def _scaled(operation: Operation, place: int, spread: Callable[[Any], Any]) -> Operations:
    """A normalization's scale and bias, behind the result at a place."""
    given = [(name, role) for name, role in (("Mul", "scale"), ("Add", "bias")) if role in operation.parameters]
    return tuple(
        _do(name, place + more, operand=spread(operation.parameters[role])) for more, (name, role) in enumerate(given)
    )


def _along_channels(operation: Operation, rank: int) -> tuple[int, ...]:
    return (-1,) if operation.channels_last or rank == _FLAT else (-1, *[1] * (rank - 2))


# --- elementwise ----------------------------------------------------------------------------------------------


def _clip(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    bounds = {"Max": operation.attributes.get("min"), "Min": operation.attributes.get("max")}
    given = [(operator, bound) for operator, bound in bounds.items() if bound is not None]
    return tuple(_do(operator, place, operand=bound) for place, (operator, bound) in enumerate(given)) or (
        _do("Identity", 0),
    )


def _gelu(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations:
    inner: Operations
    if operation.attributes.get("approximate") != "tanh":
        inner = (_do("Mul", 0, operand=1 / math.sqrt(2)), _do("Erf", 1))
    else:
        # x + 0.044715 x^3, as x (1 + 0.044715 x^2)
        inner = (
            _do("Mul", 0, 0),
            _do("Mul", 1, operand=0.044715),
            _do("Add", 2, operand=1.0),
            _do("Mul", 0, 3),
            _do("Mul", 4, operand=math.sqrt(2 / math.pi)),
            _do("Tanh", 5),
        )
    last = len(inner)
    return (*inner, _do("Add", last, operand=1.0), _do("Mul", 0, last + 1), _do("Mul", last + 2, operand=0.5))


def _erf(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations:
    """The quotient of polynomials by which XLA computes it of float32 (`RewriteErf32Pattern`): within 4e-7."""
    steps = [_do("Clip", 0, min=-_ERF_ONE, max=_ERF_ONE), _do("Mul", 1, 1)]
    ends = []
    for coefficients in (_ERF_ABOVE, _ERF_BELOW):
        first, *rest = coefficients[1:]
        steps += [_do("Mul", 2, operand=coefficients[0]), _do("Add", len(steps) + 1, operand=first)]
        for coefficient in rest:
            steps += [_do("Mul", len(steps), 2), _do("Add", len(steps) + 1, operand=coefficient)]
        ends.append(len(steps))
    steps.append(_do("Mul", 1, ends[0]))
    return (*steps, _do("Div", len(steps), ends[1]))


def _stack(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    """Joined along an axis of length 1."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or any(shape.count(None) > 1 for shape in known):
        return None
    axis = operation.integer("axis") % (len(known[0]) + 1)
    sizes = [tuple(-1 if size is None else size for size in shape) for shape in known]
    parts = [_do("Reshape", place, shape=(*shape[:axis], 1, *shape[axis:])) for place, shape in enumerate(sizes)]
    return (*parts, _do("Concat", *range(len(parts), 2 * len(parts)), axis=axis))


def _elu(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations:
    alpha = operation.real("alpha", 1.0)
    return (
        _do("Min", 0, operand=0.0),
        _do("Exp", 1),
        _do("Sub", 2, operand=1.0),
        _do("Mul", 3, operand=alpha),
        _do("Max", 0, operand=0.0),
        _do("Add", 4, 5),
    )


def _selu(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations:
    alpha = operation.real("alpha", 1.67326319217681884765625)
    return _do("Elu", 0, alpha=alpha), _do("Mul", 1, operand=operation.real("gamma", 1.05070102214813232421875))


def _swish(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations:
    alpha = operation.real("alpha", 1.0)
    if alpha == 1.0:
        return _do("Sigmoid", 0), _do("Mul", 0, 1)
    return _do("Mul", 0, operand=alpha), _do("Sigmoid", 1), _do("Mul", 0, 2)


def _hard_sigmoid(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations:
    return (
        _do("Mul", 0, operand=operation.real("alpha", 0.2)),
        _do("Add", 1, operand=operation.real("beta", 0.5)),
        _do("Clip", 2, min=0.0, max=1.0),
    )


def _leaky(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations:
    slope = operation.parameters["slope"] if operation.operator == "PRelu" else operation.real("alpha", 0.01)
    return (
        _do("Min", 0, operand=0.0),
        _do("Mul", 1, operand=slope),
        _do("Max", 0, operand=0.0),
        _do("Add", 2, 3),
    )


def _shrink(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    """Where |x| is over the threshold, it moves towards zero; thresholds below zero have no such form."""
    threshold, offset = operation.real("lambd", 0.5), operation.real("bias", 0.0)
    if threshold < 0:
        return None
    if threshold == offset:
        return _do("Clip", 0, min=-threshold, max=threshold), _do("Sub", 0, 1)
    return (
        _do("Abs", 0),
        _do("Sub", 1, operand=threshold),
        _do("Sign", 2),
        _do("Clip", 3, min=0.0, max=1.0),
        _do("Sign", 0),
        _do("Mul", 5, operand=offset),
        _do("Sub", 0, 6),
        _do("Mul", 7, 4),
    )


def _softplus(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations:
    """max(x, 0) + log(1 + exp(-|x|)), which doesn't overflow."""
    return (
        _do("Abs", 0),
        _do("Mul", 1, operand=-1.0),
        _do("Exp", 2),
        _do("Add", 3, operand=1.0),
        _do("Log", 4),
        _do("Max", 0, operand=0.0),
        _do("Add", 5, 6),
    )


def _fixed(*operations: Operation) -> Callable[[Operation, Sequence[Sizes | None]], Operations]:
    return lambda *_: operations


_LOWERINGS: Mapping[str, Callable[[Operation, Sequence[Sizes | None]], Operations | None]] = {
    **RECURRENT,
    "MatMul": _product,
    "BatchNormalization": _batch_normalization,
    "LayerNormalization": _layer_normalization,
    "InstanceNormalization": _instance_normalization,
    "GroupNormalization": _group_normalization,
    "Clip": _clip,
    "Gelu": _gelu,
    "Erf": _erf,
    "Stack": _stack,
    "Elu": _elu,
    "Selu": _selu,
    "Swish": _swish,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _fixed(_do("HardSigmoid", 0, alpha=1 / 6, beta=0.5), _do("Mul", 0, 1)),
    "LeakyRelu": _leaky,
    "PRelu": _leaky,
    "Shrink": _shrink,
    "Softplus": _softplus,
    "Softsign": _fixed(_do("Abs", 0), _do("Add", 1, operand=1.0), _do("Div", 0, 2)),
    "Mish": _fixed(_do("Softplus", 0), _do("Tanh", 1), _do("Mul", 0, 2)),
    "LogSoftmax": lambda operation, _: (Operation("Softmax", (0,), operation.attributes), _do("Log", 1)),
    "Rsqrt": _fixed(_do("Sqrt", 0), _do("Reciprocal", 1)),
    "Reciprocal": _fixed(_do("Div", 0, operand=1.0, first=True)),
    "Square": _fixed(_do("Mul", 0, 0)),
    "Neg": _fixed(_do("Mul", 0, operand=-1.0)),
    "Relu": _fixed(_do("Max", 0, operand=0.0)),
    "QuantizeLinear": lambda operation, _: _quantized(operation),
    "DequantizeLinear": lambda operation, _: (_do("Mul", 0, operand=operation.parameters["scale"]),),
}


def _quantized(operation: Operation) -> Operations | None:
    """Rounded to int8's numbers, which stay real ones; for formats without such a type."""
    zero = operation.parameters.get("zero_point")
    scale = operation.parameters["scale"].astype(np.float64)
    if zero is not None and np.any(zero):
        return None
    return _do("Mul", 0, operand=1 / scale), _do("Round", 1), _do("Clip", 2, min=-128.0, max=127.0)
