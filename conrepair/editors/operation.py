"""Operators that an edit puts into a model: in the neutral vocabulary, each reading tensors or earlier results."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from conrepair.equations.expression import ALL, Expression, Term, computed, names_in
from conrepair.graph.attributes import Attribute, Attributed
from conrepair.graph.layer_graph import Array, Node
from conrepair.graph.operators import OPERATORS

__all__ = [
    "CHOICE",
    "NotEditableError",
    "Operation",
    "Step",
    "Steps",
    "Writer",
    "operation_of",
    "operations_of",
    "two_read",
    "what_is_read",
]

CHOICE = ("condition", "x", "y")
"""What Where reads, in its order: constants by these roles, operands between them."""

Step = tuple[str, Mapping[str, Any], Sequence[Array]]
"""An operator as ONNX calls it, its attributes, and the constants behind its first input."""

_IN_PLACE = {"Concat", "Einsum"}  # their inputs say where constants stand
_IN_FRONT = ("left", "table")
_BEHIND = ("operand", "weight", "indices")
_TYPES = {1: "float32", 6: "int32", 7: "int64", 10: "float16", 11: "float64"}  # as ONNX numbers them
_ROLES = {
    "QuantizeLinear": ("scale", "zero_point"),
    "DequantizeLinear": ("scale", "zero_point"),
    "Gather": ("indices",),
    "PRelu": ("slope",),
}


_CLIPPED = ("min", "max")  # what Clip has behind its operand
_NEUTRAL = {"Add": 0.0, "Mul": 1.0, "Max": -np.inf, "Min": np.inf}  # what leaves the other operand as it is
_OF_CONSTANTS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide} | {
    "Sqrt": np.sqrt,
    "Neg": np.negative,
}


class NotEditableError(Exception):
    """The format can't express a change, or can't at this place."""


@dataclass(frozen=True)
class Operation(Attributed):
    """One operator of a small graph.

    Attributes:
        operator: In the vocabulary of `conrepair.graph.operators`.
        inputs: Names of the model's tensors, or positions of earlier operations; "" where a parameter stands.
        attributes: In the vocabulary's convention. A `shape` may have one -1: what is left.
        parameters: By role, in the vocabulary's convention.
        channels_last: Whether the channels are the last axis, for operators that have channels.
    """

    operator: str
    inputs: tuple[str | int, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    parameters: Mapping[str, Array] = field(default_factory=dict)
    channels_last: bool = False

    def integers(self, name: str) -> list[int]:
        """Axes, sizes, an order.

        Raises:
            NotEditableError: if the operation doesn't say them.
        """
        value = self.attributes.get(name)
        if not isinstance(value, tuple):
            raise NotEditableError(f"{self.operator} needs {name}")
        return [int(item) for item in value]


def operation_of(node: Node, place: Callable[[str], str | int] = str) -> Operation:
    """A node of a network, as an operation.

    Args:
        node: Of one result.
        place: From a tensor that the node reads to where the operation reads it.

    Raises:
        NotEditableError: if the node has several results.
    """
    if len(node.outputs) != 1:
        raise NotEditableError(f"{node.name} ({node.op}) has {len(node.outputs)} results")
    given = {name: value for name, value in node.attributes.items() if value is not None}
    numbers = {role: parameter.numpy() for role, parameter in node.parameters.items()}
    read = tuple(place(name) if name else "" for name in node.inputs)
    return Operation(node.op, read, given, numbers, node.channels_last)


def operations_of(steps: Sequence[Step], tensor: str) -> tuple[Operation, ...]:
    """A chain of ONNX's operators behind a tensor.

    Args:
        steps: The chain.
        tensor: What the first one reads.

    Raises:
        NotEditableError: if a constant has no place in the vocabulary.
    """
    found: list[Operation] = []
    for operator, attributes, constants in steps:
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in attributes.items()}
        arrays = [np.asarray(array) for array in constants]
        parameters: dict[str, Array] = {}
        if operator == "Clip" and arrays:
            given |= dict(zip(_CLIPPED, (float(array.item()) for array in arrays), strict=False))
        elif operator == "Cast" and isinstance(number := given.get("to"), int):
            given["to"] = _TYPES[number]
        else:
            parameters = dict(zip(_ROLES.get(operator, ("operand",)), arrays, strict=False))
        if len(parameters) < len(arrays) and operator != "Clip":
            raise NotEditableError(f"{operator} has no place for {len(arrays)} constants behind its input")
        found.append(Operation(operator, (len(found) - 1 if found else tensor,), given, parameters))
    return tuple(found)


class Steps:
    """Operations in order, each reading by position: the operands first, then the results.

    Attributes:
        made: The operations.
    """

    def __init__(self, operands: int) -> None:
        """Begin.

        Args:
            operands: How many there are.
        """
        self.made: list[Operation] = []
        self._operands = operands

    def add(
        self, operator: str, *inputs: int, parameters: Mapping[str, Array] | None = None, **attributes: Attribute
    ) -> int:
        """One operation; the position of its result."""
        self.made.append(Operation(operator, inputs, attributes, parameters or {}))
        return self._operands + len(self.made) - 1

    def write(self, equation: Expression, places: Mapping[str, int], given: Mapping[str, Any]) -> int:
        """The operations that compute an equation; the position of its result.

        Args:
            equation: Any that isn't a constant; axes of means are `axes`.
            places: Positions, by the names of tensors.
            given: Constants and attributes, by the other names.

        Raises:
            KeyError: if a name stands for nothing.
            TypeError: if the equation is a constant.
        """
        values: dict[str, int | Array] = {
            name: places[name] if name in places else _number(given[name]) for name in names_in(equation)
        }
        place = computed(equation, values, _number, lambda term, read: self._call(term, read, given))
        if not isinstance(place, int):
            raise TypeError(f"{equation} is a constant")
        return place

    def _call(self, term: Term, read: Sequence[int | Array], given: Mapping[str, Any]) -> int | Array:
        operator, places = term.operator, [item for item in read if isinstance(item, int)]
        arrays = [item for item in read if not isinstance(item, int)]
        if not places:
            return np.asarray(_OF_CONSTANTS[operator](*arrays))
        if arrays and not arrays[0].ndim and arrays[0] == _NEUTRAL.get(operator):
            return places[0]
        said: dict[str, Any] = {"axes": given["axes"], "keepdims": True} if operator == "ReduceMean" else {}
        for name, item in term.attributes:
            value = given.get(item, item) if isinstance(item, str) else item
            said |= value if name == ALL else {name: value}
        parameters = {role: said.pop(role) for role in OPERATORS[operator].parameters if role in said}
        if operator == "Clip":
            said = dict(zip(_CLIPPED, map(float, arrays), strict=True))
        elif arrays:
            parameters["operand"] = arrays[0].astype(np.float32)
            said["constant_first"] = not isinstance(read[0], int)
        return self.add(operator, *places, parameters=parameters, **said)


def _number(value: Any) -> Array:
    return np.asarray(value, np.float64)


Value = TypeVar("Value")


def what_is_read(operation: Operation, operands: Sequence[Value], constant: Callable[[Array], Value]) -> list[Value]:
    """Operands and constants in the order in which an operator reads them.

    Args:
        operation: What is written.
        operands: For those of its inputs that aren't "", in order.
        constant: Makes a value of numbers.
    """
    rest, numbers = iter(operands), operation.parameters
    if operation.operator == "Where":
        return [constant(numbers[role]) if role in numbers else next(rest) for role in CHOICE]
    if operation.operator in _IN_PLACE:
        pieces = map(constant, numbers.values())
        return [*[next(pieces) if item == "" else next(rest) for item in operation.inputs], *pieces]
    first = (*_IN_FRONT, "operand") if operation.attributes.get("constant_first") else _IN_FRONT
    behind = [role for role in _BEHIND if role in numbers and role not in first]
    front = [role for role in first if role in numbers]
    return [*(constant(numbers[role]) for role in front), *operands, *(constant(numbers[role]) for role in behind)]


def two_read(
    operation: Operation, operands: Sequence[Value], constant: Callable[[Array], Value]
) -> tuple[Value, Value]:
    """The same of an operator that reads two values.

    Raises:
        NotEditableError: if there are fewer or more.
    """
    read = what_is_read(operation, operands, constant)
    if len(read) != 2:
        raise NotEditableError(f"{operation.operator} takes two operands, not {len(read)}")
    return read[0], read[1]


Sizes = tuple[int | None, ...]
Lowering = Callable[[Operation, Sequence[Sizes | None], bool], "tuple[Operation, ...] | None"]


class Writer(abc.ABC, Generic[Value]):
    """Writes operations in a format's own words.

    What the format has no operator for is written in simpler ones.

    Attributes:
        channels_last: Where the format's operators want the channels.
    """

    channels_last = False

    def __init__(self, lower: Lowering) -> None:
        """Make one.

        Args:
            lower: Says an operation in simpler ones; see `conrepair.editors.lowering`.
        """
        self._lower = lower

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
        try:
            return self.write(operation, operands)
        except NotEditableError:
            simpler = self._lower(operation, [self.shape(value) for value in operands], self.channels_last)
            if simpler is None:
                raise
        values = list(operands)
        for item in simpler:
            values.append(self._one(item, [values[int(place)] for place in item.inputs]))
        return values[-1]

    @staticmethod
    def refuse(reason: str) -> NoReturn:
        """Say that an operation can't be expressed."""
        raise NotEditableError(reason)
