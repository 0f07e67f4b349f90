"""One operator of a PyTorch graph, with its arguments by name, and what it is in the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.fx import Node

from conrepair.formats.torch.load.framework import array_from_tensor, dtype_name
from conrepair.formats.torch.read.constants import TorchConstants
from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.graph.layer_graph import Array, Attribute, Parameter, Tensor

Transform: TypeAlias = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class TorchPart:
    """What becomes a node of the neutral graph.

    Attributes:
        op: In the vocabulary.
        attributes: Those that aren't at their default.
        inputs: Tensors of the graph, or names of those between the parts of one operator; None where a constant
            stands.
        parameters: By role.
        outputs: The operator's results by their position, and names of tensors between parts.
        inner: The tensors between parts that it gives.
        suffix: Of its name, for operators of several parts.
        native: What PyTorch calls it, where that isn't the operator's name.
    """

    op: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    inputs: Sequence[Node | str | None] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    outputs: Sequence[str | int] = (0,)
    inner: Sequence[Tensor] = ()
    suffix: str = ""
    native: str = ""


class TorchCall:
    """A call of an operator, for rules to look at.

    Attributes:
        node: The call.
        name: Of the operator, without its library and variant.
        arguments: By the schema's names, defaults filled in.
    """

    def __init__(self, node: Node, values: Mapping[Node, Any], constants: TorchConstants) -> None:
        self.node = node
        self._values = values
        self._constants = constants
        self.name, self.arguments = bound(node)

    def __getitem__(self, name: str) -> Any:
        """An argument; None for one that this variant of the operator doesn't have."""
        return self.arguments.get(name)

    def depends(self, value: Any) -> bool:
        """Whether it's a tensor that depends on the network's inputs."""
        return isinstance(value, Node) and value in self._constants.dependent

    def is_constant(self, value: Any) -> bool:
        """Whether it's a tensor that doesn't."""
        return isinstance(value, Node) and value not in self._constants.dependent

    def value(self, node: Node | None = None) -> Any:
        """What a node gives, this one by default, as a tensor without content."""
        return self._values[node or self.node]

    def shape(self, node: Node | None = None) -> tuple[int, ...] | None:
        """Sizes of a tensor; None where they aren't known."""
        value = self.value(node)
        return sizes(value.shape) if isinstance(value, torch.Tensor) else None

    def rank(self, node: Node | None = None) -> int:
        """Number of a tensor's axes."""
        return int(self.value(node).dim())

    def is_read(self, position: int) -> bool:
        """Whether somebody reads one of several results."""
        return any(user.args[1] == position for user in self.node.users)

    def parameter(self, *nodes: Node, transform: Transform | None = None) -> Parameter:
        """Constants in the vocabulary's convention.

        Args:
            nodes: Constant tensors.
            transform: Makes one tensor of them; also called on tensors without content. The first one by default.
        """
        function = transform or _first
        result = function(*map(self.value, nodes))
        return Parameter(
            self._constants.name(nodes[0]),
            tuple(map(int, result.shape)),
            dtype_name(self.value(nodes[0]).dtype),
            lambda: _read_only(function(*map(self._constants.value, nodes))),
        )

    def operand(self, value: Any, *, like: Node, transform: Transform | None = None) -> Parameter:
        """A constant operand that may be a number.

        Args:
            value: A constant tensor or a number.
            like: The operand that depends on the inputs.
            transform: For a tensor or a number.
        """
        if isinstance(value, Node):
            return self.parameter(value, transform=transform)
        number = value if transform is None else transform(value)
        dtype = self.value(like).dtype
        if isinstance(number, float) and not (dtype.is_floating_point or dtype.is_complex):
            dtype = torch.get_default_dtype()
        name = dtype_name(dtype)
        return Parameter("", (), name, lambda: np.array(number, numpy_dtype(name)))

    def sorted_by_role(self, roles: Mapping[str, Any]) -> tuple[list[Node | str | None], dict[str, Parameter]]:
        """What depends on the network's inputs, in order, and the rest as parameters; None is left out."""
        inputs: list[Node | str | None] = [value for value in roles.values() if self.depends(value)]
        constants = {role: value for role, value in roles.items() if value is not None and not self.depends(value)}
        return inputs, {role: self.operand(value, like=self.node) for role, value in constants.items()}


def axis(position: int, rank: int) -> int:
    """An axis counted from 0."""
    return position + rank if position < 0 else position


def pair(value: Any, rank: int) -> tuple[int, ...]:
    """One number per spatial axis, from one for each or one for all."""
    numbers = tuple(value) if isinstance(value, list | tuple) else (value,)
    return tuple(map(int, numbers * rank if len(numbers) == 1 else numbers))


def sizes(shape: Sequence[Any]) -> tuple[int, ...] | None:
    """A shape, or None if one of its sizes is a symbol."""
    return tuple(shape) if all(isinstance(size, int) for size in shape) else None


def bound(node: Node) -> tuple[str, dict[str, Any]]:
    """What's called, without its library and variant, and the arguments by name, also those that aren't given."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return str(getattr(node.target, "__name__", node.target)), _by_position(node)
    schema = node.target._schema
    arguments = {}
    for position, argument in enumerate(schema.arguments):
        given = position < len(node.args) and not argument.kwarg_only
        default = argument.default_value if argument.has_default_value() else None
        arguments[argument.name] = node.args[position] if given else node.kwargs.get(argument.name, default)
    return operator_name(node.target), arguments


def operator_name(target: torch._ops.OpOverload) -> str:
    """Without its library, where that's ATen, and its variant."""
    library, _, name = target._schema.name.partition("::")
    return name if library == "aten" else f"{library}.{name}"


def _by_position(node: Node) -> dict[str, Any]:
    """Arguments of what has no schema, by position."""
    return {f"argument_{position}": value for position, value in enumerate(node.args)} | dict(node.kwargs)


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _read_only(tensor: torch.Tensor) -> Array:
    """The memory may be the network's own."""
    array = array_from_tensor(tensor.detach().contiguous())
    array.setflags(write=False)
    return array
