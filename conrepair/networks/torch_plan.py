"""The steps in which a piece of a PyTorch graph is computed, worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from conrepair.networks.torch_constants import TorchConstants


@dataclass(frozen=True)
class _Slot:
    """Where a value lies while a piece runs."""

    index: int


@dataclass
class PlannedCall:
    """One call, with what it reads besides constants."""

    function: Any
    arguments: list[Any]
    options: dict[str, Any]
    loads: list[tuple[int, int]] = field(default_factory=list)  # position of an argument, slot
    nested: list[tuple[int | str, Any]] = field(default_factory=list)  # position or name, structure with slots
    result: int = 0
    kept: tuple[str, ...] = ()
    released: tuple[int, ...] = ()


class Planner:
    """Turns nodes into steps; a node that is fed and computed has a slot for either value.

    Attributes:
        size: Number of slots.
        storages: Addresses of the constants that are read.
    """

    def __init__(self, constants: TorchConstants, given: Mapping[Node, str], needs: Sequence[str]) -> None:
        self._constants = constants
        slots = {name: index for index, name in enumerate(needs)}
        self._read = {node: slots[name] for node, name in given.items() if name in slots}
        self.size = len(self._read)
        self.storages: set[int] = set()

    def slot(self, node: Node) -> int:
        """Where readers find a node's value."""
        return self._read[node]

    def plan(self, nodes: Sequence[Node], wanted: Mapping[Node, str]) -> list[PlannedCall]:
        """Order the calls and say when each value is no longer needed.

        Args:
            nodes: What to compute, in the graph's order.
            wanted: Names of the results.
        """
        steps: list[PlannedCall] = []
        last: dict[int, int] = {}
        for node in nodes:
            step = self._step(node)
            for slot in _slots((step.loads, step.nested)):
                last[slot] = len(steps)
            step.result = self.size
            self.size += 1
            self._read.setdefault(node, step.result)
            last[step.result] = len(steps)
            if node in wanted:
                step.kept = (wanted[node],)
            steps.append(step)
        for slot, position in last.items():
            steps[position].released += (slot,)
        return steps

    def _step(self, node: Node) -> PlannedCall:
        step = PlannedCall(node.target, list(node.args), dict(node.kwargs))
        for position, argument in enumerate(node.args):
            ready = self._filled(argument)
            step.arguments[position] = ready
            if isinstance(ready, _Slot):
                step.loads.append((position, ready.index))
            elif _has_slots(ready):
                step.nested.append((position, ready))
        for name, argument in node.kwargs.items():
            step.options[name] = self._filled(argument)
            if _has_slots(step.options[name]):
                step.nested.append((name, step.options[name]))
        return step

    def _filled(self, argument: Any) -> Any:
        """An argument with constants in place and slots for what is computed."""
        if isinstance(argument, Node):
            if argument in self._read:
                return _Slot(self._read[argument])
            value = self._constants.value(argument)
            if isinstance(value, torch.Tensor):
                self.storages.add(value.untyped_storage().data_ptr())
            return value
        if isinstance(argument, tuple):
            return tuple(self._filled(item) for item in argument)
        if isinstance(argument, list):
            return [self._filled(item) for item in argument]
        return argument


def needed(
    given: Mapping[Node, str], wanted: Sequence[Node], constants: TorchConstants
) -> tuple[list[Node], set[Node]]:
    """The nodes to compute, in the graph's order, and those whose fed value is read."""
    found: set[Node] = set()
    reads: set[Node] = set()
    pending = [node for node in wanted if node in constants.dependent]
    while pending:
        node = pending.pop()
        if node in found:
            continue
        if node.op == "placeholder":
            raise ValueError(f"the input {node.name} is needed, but isn't fed")
        found.add(node)
        for origin in node.all_input_nodes:
            if origin in given:
                reads.add(origin)
            elif origin in constants.dependent:
                pending.append(origin)
    return sorted(found), reads


def compute(step: PlannedCall, values: list[Any]) -> None:
    """Call one operator, from slots into its slot."""
    arguments, options = step.arguments, step.options
    if step.loads or step.nested:
        arguments = arguments.copy()
        for position, slot in step.loads:
            arguments[position] = values[slot]
        for key, structure in step.nested:
            if isinstance(key, int):
                arguments[key] = _loaded(structure, values)
            else:
                options = options | {key: _loaded(structure, values)}
    values[step.result] = step.function(*arguments, **options)


def _loaded(structure: Any, values: Sequence[Any]) -> Any:
    if isinstance(structure, _Slot):
        return values[structure.index]
    if isinstance(structure, list):
        return [_loaded(item, values) for item in structure]
    if isinstance(structure, tuple):
        return tuple(_loaded(item, values) for item in structure)
    return structure


def _slots(structure: Any) -> set[int]:
    loads, nested = structure
    found = {slot for _, slot in loads}
    pending = [item for _, item in nested]
    while pending:
        item = pending.pop()
        if isinstance(item, _Slot):
            found.add(item.index)
        elif isinstance(item, list | tuple):
            pending.extend(item)
    return found


def _has_slots(structure: Any) -> bool:
    return bool(_slots(([], [("", structure)])))
