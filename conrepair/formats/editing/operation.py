"""Operators that an edit puts into a model: in the neutral vocabulary, each reading tensors or earlier results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from conrepair.ground.equations.expression import ALL, Expression, Term, computed, names_in
from conrepair.ground.graph.attributes import Attributed
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node
from conrepair.ground.graph.operators import OPERATORS
from conrepair.ground.operators.record import Attribute

CHOICE = ("condition", "x", "y")
"""What Where reads, in its order: constants by these roles, operands between them."""

_IN_PLACE = {"Concat", "Einsum"}  # their inputs say where constants stand
_IN_FRONT = ("left", "table")
_BEHIND = ("operand", "weight", "indices")
_CLIPPED = ("min", "max")  # what Clip has behind its operand
_NEUTRAL = {"Add": 0.0, "Mul": 1.0, "Max": -np.inf, "Min": np.inf}  # what leaves the other operand as it is


class NotEditableError(Exception):
    """The format can't express a change, or can't at this place."""


@dataclass(frozen=True)
class Operation(Attributed):
    """One operator of a small graph.

    Attributes:
        operator: In the vocabulary of `conrepair.ground.graph.operators`.
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

    def integers(self, name: str, usual: Sequence[int] | None = None) -> list[int]:
        """Axes, sizes, an order.

        Args:
            name: Of the attribute.
            usual: What they are where the operation doesn't say them.

        Raises:
            NotEditableError: if nothing says them.
        """
        value = self.attributes.get(name)
        numbers = value if isinstance(value, tuple) else usual
        if numbers is None:
            raise NotEditableError(f"{self.operator} needs {name}")
        return [int(item) for item in numbers]


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


class Steps:
    """Operations in order, each reading by position: the operands first, then the results.

    Attributes:
        made: The operations.
    """

    def __init__(self, operands: int) -> None:
        """Begin without operations.

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
            return np.asarray(OPERATORS[operator].compute(*arrays))
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


Sizes = tuple[int | None, ...]
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


# Changes around an activation that a format has inside a layer: it becomes an operation of its own.


def unfused(
    graph: LayerGraph, hidden: str, tensor: str, operations: Sequence[Operation]
) -> tuple[Node, str, Sequence[Operation]] | None:
    """What to compute in place of which tensor, once an activation isn't inside its layer any more.

    Args:
        graph: With each such activation as a node, behind a tensor that can't be reached.
        hidden: How the names of such tensors end.
        tensor: Whose readers shall read the operations' result.
        operations: They may read the tensor in front of the activation.

    Returns:
        The activation that must be taken out of its layer, the tensor behind it, and the operations; None where no
        such tensor is meant.
    """
    front = tensor
    if not tensor.endswith(hidden):
        producer = graph.producers.get(tensor)
        front = producer.inputs[0] if producer is not None and producer.inputs else ""
        if not front.endswith(hidden) or not any(front in operation.inputs for operation in operations):
            return None
    activation = graph.consumers[front][0]
    behind = activation.outputs[0]
    fed = [
        replace(item, inputs=tuple(behind if name == front else name for name in item.inputs)) for item in operations
    ]
    if tensor == front:
        fed.append(Operation(activation.op, (len(fed) - 1,), activation.attributes))
    return activation, behind, fed
