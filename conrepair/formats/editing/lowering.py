"""Operators in terms of simpler ones, for formats that don't have them; and what writes them in a format's words.

Inputs of what a lowering gives are positions: the operation's operands first, then results, in order.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Generic, NoReturn

import numpy as np

from conrepair.formats.editing.lowering_recurrent import unrolled
from conrepair.formats.editing.lowering_windows import POOLS, WINDOWS, is_dilated, padded, window_of
from conrepair.formats.editing.operation import NotEditableError, Operation, Sizes, Steps, Value
from conrepair.ground.equations.expression import parse
from conrepair.ground.equations.operators import EQUATIONS, SOFT_SHRINK, TANH_GELU
from conrepair.ground.graph.operators import NORMALIZATIONS, OF_CHANNELS, OPERATORS, RECURRENT_ACTIVATIONS, SOFTMAX

_FLAT = 2  # axes of a tensor without places
_UNBOUNDED = {"min": -math.inf, "max": math.inf}

CHANNELLED = OF_CHANNELS - {"Resize"}  # whose scales are of axes
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
    if operation.operator in SOFTMAX and rank and (axis := operation.integer("axis", -1) % rank) != rank - 1:
        return _with_last_axis(operation, axis, rank)
    if operation.operator in _MADE:
        return _MADE[operation.operator](operation, shapes)
    equation, steps = _equation(operation), Steps(1)
    if equation is None or len(shapes) != 1:
        return None
    with suppress(KeyError):  # it hasn't what its equation reads
        steps.write(parse(equation), {"x": 0}, _given(operation, shapes[0]))
        return tuple(steps.made) or (Operation("Identity", (0,)),)
    return None


def _turned(operation: Operation, rank: int, channels_last: bool) -> Operations:
    """With the channels where the format wants them."""
    last, first = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
    there, back = (last, first) if channels_last else (first, last)
    inner = Operation(operation.operator, (1,), operation.attributes, operation.parameters, channels_last)
    return Operation("Transpose", (0,), {"perm": there}), inner, Operation("Transpose", (2,), {"perm": back})


def _with_last_axis(operation: Operation, axis: int, rank: int) -> Operations:
    perm = tuple(rank - 1 if place == axis else axis if place == rank - 1 else place for place in range(rank))
    inner = Operation(operation.operator, (1,), {**operation.attributes, "axis": rank - 1})
    return Operation("Transpose", (0,), {"perm": perm}), inner, Operation("Transpose", (2,), {"perm": perm})


def _product(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    """A bias as a node of its own."""
    if "bias" not in operation.parameters:
        return None
    rest = {role: array for role, array in operation.parameters.items() if role != "bias"}
    steps, places = Steps(len(shapes)), range(len(shapes))
    product = steps.add("MatMul", *places, parameters=rest, **operation.attributes)
    steps.write(parse("product + bias"), {"product": product}, operation.parameters)
    return tuple(steps.made)


def _group_normalization(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    """The groups as channels of their own, normalized without parameters; then each channel's scale and bias."""
    shape, groups = shapes[0] if shapes else None, operation.integer("groups")
    if shape is None or operation.channels_last or None in shape[1:]:
        return None
    sizes = [int(size or 0) for size in shape[1:]]
    given = {
        **_given(operation, shape),
        "apart": (-1, groups, math.prod(sizes) // groups),
        "ones": np.ones(groups, np.float32),
        "zeros": np.zeros(groups, np.float32),
        "whole": (-1, *sizes),
    }
    steps = Steps(1)
    inner = "InstanceNormalization(Reshape(x, shape=apart), epsilon=epsilon, scale=ones, bias=zeros)"
    steps.write(parse(f"Reshape({inner}, shape=whole) * scale + bias"), {"x": 0}, given)
    return tuple(steps.made)


def _stack(operation: Operation, shapes: Sequence[Sizes | None]) -> Operations | None:
    """Joined along an axis of length 1."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or any(shape.count(None) > 1 for shape in known):
        return None
    axis, steps = operation.integer("axis") % (len(known[0]) + 1), Steps(len(known))
    sizes = [tuple(-1 if size is None else size for size in shape) for shape in known]
    parts = [
        steps.add("Reshape", place, shape=(*shape[:axis], 1, *shape[axis:])) for place, shape in enumerate(sizes)
    ]
    steps.add("Concat", *parts, axis=axis)
    return tuple(steps.made)


def _equation(operation: Operation) -> str | None:
    match operation.operator:
        case "Gelu" if operation.attributes.get("approximate") == "tanh":
            return TANH_GELU
        case "Shrink" if operation.real("lambd", 0.5) < 0:
            return None
        case "Shrink" if operation.real("lambd", 0.5) == operation.real("bias", 0.0):
            return SOFT_SHRINK
        case "QuantizeLinear" if np.any(operation.parameters.get("zero_point", 0)):
            return None
    return EQUATIONS.get(operation.operator)


def _given(operation: Operation, shape: Sizes | None) -> dict[str, Any]:
    """What the names of an operation's equation stand for; a normalization's scale and bias may be missing."""
    given: dict[str, Any] = {"attributes": operation.attributes, **_UNBOUNDED}
    for attributes in (OPERATORS[operation.operator].attributes, operation.attributes):
        given |= {name: value for name, value in attributes.items() if value is not None}
    parameters = operation.parameters
    if operation.operator in NORMALIZATIONS:
        given |= {"scale": 1.0, "bias": 0.0}
    if operation.operator in CHANNELLED:
        if shape is None:
            return {}  # along which axis the channels are isn't known
        along = (-1, *[1] * (0 if operation.channels_last else len(shape) - _FLAT))
        parameters = {role: array.reshape(along) for role, array in parameters.items()}
        given["axes"] = tuple(range(1, len(shape) - 1) if operation.channels_last else range(2, len(shape)))
    return {**given, **parameters}


_MADE: Mapping[str, Callable[[Operation, Sequence[Sizes | None]], Operations | None]] = {
    **dict.fromkeys(WINDOWS, padded),
    **dict.fromkeys(RECURRENT_ACTIVATIONS, unrolled),
    "MatMul": _product,
    "GroupNormalization": _group_normalization,
    "Stack": _stack,
}


_SORTS = {**dict.fromkeys(POOLS, "pool"), **dict.fromkeys(SOFTMAX, "softmax")}


class Writer(abc.ABC, Generic[Value]):
    """Writes operations in a format's own words.

    Methods are called as the operator that they write (`_write_matmul`), or as its sort. What the format has no
    operator for is written in simpler ones.

    Attributes:
        channels_last: Where the format's operators want the channels.
        plain_windows: Whether its windows have no pads of their own, and its poolings no more than a kernel and
            strides.
        sorts: By operator, of those that one method writes; pools and softmax are sorts in each format.
    """

    channels_last = False
    plain_windows = False
    sorts: ClassVar[Mapping[str, str]] = {}

    def _method(self, operator: str) -> Any:
        """What writes an operator: `_write_matmul`, or for its sort `_write_pool`; None where there is neither."""
        names = (operator, _SORTS.get(operator, ""), self.sorts.get(operator, ""))
        found = (getattr(self, f"_write_{name.lower()}", None) for name in names if name)
        return next((method for method in found if method is not None), None)

    @abc.abstractmethod
    def write(self, operation: Operation, operands: Sequence[Value]) -> Value:
        """One operation.

        Args:
            operation: What to compute.
            operands: For those of its inputs that aren't "", in order.

        Raises:
            NotEditableError: if the format has no operator for it.
        """

    @abc.abstractmethod
    def shape(self, value: Value) -> Sizes | None:
        """Sizes of a value, as far as they're known."""

    def compute(self, operations: Sequence[Operation], operand: Callable[[str], Value]) -> Value:
        """Several operations; the last one's result.

        Args:
            operations: At least one.
            operand: What stands for one of the model's tensors.

        Raises:
            NotEditableError: if one can't be expressed.
        """
        results: list[Value] = []
        for operation in operations:
            read = [
                results[item] if isinstance(item, int) else operand(item) for item in operation.inputs if item != ""
            ]
            results.append(self._one(operation, read))
        return results[-1]

    def _one(self, operation: Operation, operands: Sequence[Value]) -> Value:
        shapes = [self.shape(value) for value in operands]
        try:
            self._check(operation, shapes[0] if shapes else None)
            return self.write(operation, operands)
        except NotEditableError:
            simpler = lower(operation, shapes, self.channels_last)
            if simpler is None:
                raise
        values = list(operands)
        for item in simpler:
            values.append(self._one(item, [values[int(place)] for place in item.inputs]))
        return values[-1]

    def _check(self, operation: Operation, shape: Sizes | None) -> None:
        """Refuse channels elsewhere than where the format has them, and windows that it doesn't have."""
        operator, flat = operation.operator, shape is not None and len(shape) <= _FLAT
        if operator in CHANNELLED and operation.channels_last != self.channels_last and not flat:
            self.refuse(f"the format's {operator} has its channels {'last' if self.channels_last else 'first'}")
        if not self.plain_windows or operator not in WINDOWS:
            return
        if any(window_of(operation, "pads", 0)) or operation.attributes.get("auto_pad") not in {None, "NOTSET"}:
            self.refuse(f"the format's {operator} has no pads of its own")
        if operator in POOLS and (operation.attributes.get("ceil_mode") or is_dilated(operation)):
            self.refuse("the format's poolings have no windows over the edge, and no dilations")

    @staticmethod
    def refuse(reason: str) -> NoReturn:
        """Say that an operation can't be expressed."""
        raise NotEditableError(reason)
