"""What in a PyTorch graph depends on no input, and its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from conrepair.formats.torch.load.double import arithmetic
from conrepair.formats.torch.read.program import Program, attribute_of
from conrepair.formats.torch.read.simplify import computed
from conrepair.ground.data.following import reached

_SWITCHES = ("train", "training", "p", "dropout", "dropout_p")  # of operators that are random in training only


class TorchConstants:
    """Values that are computed when somebody asks and then kept, so that all pieces share them.

    Attributes:
        program: Whose.
        dependent: The nodes that depend on an input, or on chance.
    """

    def __init__(self, program: Program, change: Callable[[Any], Any] = lambda value: value) -> None:
        """Begin without computed constants.

        Args:
            program: Whose.
            change: Gives another value for each weight.
        """
        self.program, self._change = program, change
        self._computed: dict[Node, Any] = {}
        self.dependent = set(program.inputs)
        for node in program.module.graph.nodes:
            if node.op == "call_function" and (_is_random(node) or self.dependent.intersection(node.all_input_nodes)):
                self.dependent.add(node)

    def value(self, node: Node) -> Any:
        """A tensor, a subgraph of control flow, or what else the node gives; to be read only."""
        if node not in self._computed:
            if node.op == "placeholder":
                self._computed[node] = self._change(self.program.states.get(node.name))
            elif node.op == "get_attr":
                self._computed[node] = self._change(attribute_of(self.program.module, node))
            else:
                self._compute(node)
        return self._computed[node]

    def name(self, node: Node) -> str:
        """The name in the state dict of what a value is made from, if that's one tensor; else ""."""
        origins = {item.name for item in self.origins(node) if item.op == "placeholder"}
        return self.program.state_names.get(origins.pop(), "") if len(origins) == 1 else ""

    def _compute(self, node: Node) -> None:
        # Chains of constants can be longer than Python's recursion goes; what only they read isn't kept.
        origins = [item for item in self.origins(node) if item.op == "call_function" and item not in self._computed]
        temporary: dict[Node, Any] = {}

        def known(item: Node) -> Any:
            return temporary[item] if item in temporary else self.value(item)

        with torch.inference_mode(), arithmetic(double=self.program.double):
            for item in origins:
                temporary[item] = computed(item, known)
        self._computed[node] = temporary[node]

    def origins(self, node: Node) -> list[Node]:
        """Everything that a node is made from and the node itself, in the graph's order."""
        return sorted(reached([node], lambda item: item.all_input_nodes))


def _is_random(node: Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    for position, argument in enumerate(target._schema.arguments):
        if argument.name in _SWITCHES:
            value = node.args[position] if position < len(node.args) else argument.default_value
            if not node.kwargs.get(argument.name, value):
                return False
    return True
