"""A network while it grows: tensors, what makes them, and who reads them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from conrepair_lab.generate.pieces import Piece
from conrepair_lab.generate.settings.ports import Operand
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import Range, TensorType

_NEARLY = 1
"""So many nodes less has a chain that is nearly the longest."""


@dataclass
class Tensor:
    """A tensor of a network.

    Attributes:
        name: Of its own.
        type: Element type and sizes.
        values: That it must have; None for any.
        wish: Where the operator that it was made for is finite.
        array: A constant's.
        told: Values that don't depend on those of the network's inputs, of what a node makes.
        readers: How many inputs of nodes it's connected to.
    """

    name: str
    type: TensorType
    values: Range | None = None
    wish: tuple[float, float] | None = None
    array: np.ndarray[Any, Any] | None = None
    told: np.ndarray[Any, Any] | None = None
    readers: int = 0

    @property
    def value(self) -> np.ndarray[Any, Any] | None:
        """The tensor's values, if they're known before anything is computed."""
        return self.told if self.array is None else self.array

    @property
    def free(self) -> bool:
        """Whether any node may read it."""
        return self.type.sized and self.array is None and self.values is None


@dataclass(eq=False)
class Node:
    """An operator, applied.

    Attributes:
        op: Its name; the domain is before it where it isn't the standard's.
        inputs: Names of tensors; "" for those that are left out.
        outputs: Names of tensors; "" for those that are left out.
        attributes: Those that are said.
        origin: Which part of the generator it's from: "grown", or the name of a form, pattern or instance.
        domains: By input, where it's finite.
        piece: What stands for it in place of an operator with attributes; None for a usual one.
    """

    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    origin: str = "grown"
    domains: dict[int, tuple[float, float]] = field(default_factory=dict)
    piece: Piece | None = None


@dataclass
class Draft:
    """A network: nodes in an order in which they can be computed.

    Attributes:
        opset: Of the standard's operators.
        nodes: In order.
        tensors: By name, all of them.
        sources: Those that no node makes and that aren't constants: inputs, or weights.
        hidden: Names of those that nothing reads and that are no outputs either.
        shown: Names of those that are outputs although something reads them.
        named: How many names have been given.
    """

    opset: int
    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    sources: dict[str, Tensor] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    named: int = 0

    def source(self, made: TensorType, values: Range | None = None) -> Tensor:
        """Add a tensor that no node makes."""
        tensor = self._tensor(made, values)
        self.sources[tensor.name] = tensor
        return tensor

    def constant(self, array: np.ndarray[Any, Any]) -> Tensor:
        """Add a constant."""
        tensor = self._tensor(TensorType(array.dtype.name, array.shape))
        tensor.array = array
        return tensor

    def add(self, setting: Setting, *, instead_of: str | None = None, origin: str = "grown") -> Node:
        """Add a node, and what is new of its inputs and outputs.

        Args:
            setting: Drawn, or solved.
            instead_of: A source that its first output takes the place of; it then comes before all other nodes.
            origin: Which part of the generator it's from.
        """
        inputs = [self._connected(operand) for operand in setting.inputs]
        outputs: list[str] = []
        for place, made in enumerate(setting.outputs):
            if place == 0 and instead_of is not None:
                self.sources.pop(instead_of)
                outputs.append(instead_of)
            else:
                outputs.append("" if made is None else self._tensor(made).name)
        for place, array in setting.told.items():
            self.tensors[outputs[place]].told = array
        node = Node(setting.op, inputs, outputs, dict(setting.attributes), origin, dict(setting.domains))
        self.nodes.insert(0 if instead_of is not None else len(self.nodes), node)
        return node

    def place(self, piece: Piece, inputs: Sequence[str], origin: str) -> Node:
        """Add a piece as a node, behind all others.

        Args:
            piece: What it is.
            inputs: Names of what it reads, each of the type that the piece says.
            origin: Which part of the generator it's from.
        """
        for name in inputs:
            self.tensors[name].readers += 1
        outputs = [self._tensor(made).name for made in piece.outputs]
        node = Node(piece.op, list(inputs), outputs, {}, origin, piece=piece)
        self.nodes.append(node)
        return node

    def producers(self) -> Mapping[str, Node]:
        """By tensor, the node that makes it."""
        return {name: node for node in self.nodes for name in node.outputs}

    def reached(self, names: Iterable[str], without: Container[str] = ()) -> set[str]:
        """Names of some tensors, and of what nodes make that depends on any of them.

        Args:
            names: Of the tensors.
            without: Operators through which nothing reaches.
        """
        found = set(names)
        for node in self.nodes:
            if node.op not in without and not found.isdisjoint(node.inputs):
                found.update(filter(None, node.outputs))
        return found

    def origins(self) -> dict[str, set[str]]:
        """By tensor that a node makes, the sources on which it depends."""
        found = {name: {name} for name in self.sources}
        for node in self.nodes:
            own = set().union(*(found.get(name, ()) for name in node.inputs))
            found.update(dict.fromkeys(filter(None, node.outputs), own))
        return {name: own for name, own in found.items() if name not in self.sources}

    def deepest(self) -> list[str]:
        """Names of what nodes make that end the longest chains of nodes, or nearly so."""
        chains: dict[str, int] = {}
        for node in self.nodes:
            own = 1 + max((chains.get(name, 0) for name in node.inputs), default=0)
            chains.update(dict.fromkeys(filter(None, node.outputs), own))
        return [name for name, length in chains.items() if length >= max(chains.values()) - _NEARLY]

    def cut(self, node: Node) -> None:
        """Take a node out: what read it reads a tensor of the same type from before it, where there's one.

        Else what it made, and is read, comes from nowhere then; what nothing reads goes, too. What reads a tensor
        whose sizes depend on values, or nothing any more that a node makes, goes with it.
        """
        place = self.nodes.index(node)
        before = [*self.sources, *(name for other in self.nodes[:place] for name in other.outputs), *node.inputs]
        self.nodes.pop(place)
        for name in filter(None, node.inputs):
            self.tensors[name].readers -= 1
        made, gone = set(self.made()), []
        for name in filter(None, node.outputs):
            tensor = self.tensors[name]
            alike = [other for other in before if other and self._replaces(other, tensor)]
            tensor.array = tensor.told
            for reader in [other for other in self.nodes if name in other.inputs and tensor.array is None]:
                if alike:
                    self.replace_input(reader, name, alike[-1])
                elif not tensor.type.sized or made.isdisjoint(reader.inputs):
                    gone.append(reader)
            if tensor.readers and tensor.array is None:
                self.sources[name] = tensor
            self.hidden.discard(name)
            self.shown.discard(name)
        self._forget_unread()
        for reader in gone:
            if reader in self.nodes:
                self.cut(reader)

    def keep_last(self) -> None:
        """Take out all that the last node doesn't depend on."""
        needed: set[str] = set(self.nodes[-1].outputs) if self.nodes else set()
        for node in reversed(self.nodes):
            if needed & set(filter(None, node.outputs)):
                needed.update(node.inputs)
        for node in reversed(self.nodes):
            if not needed & set(filter(None, node.outputs)):
                self.cut(node)

    def forget(self, names: Iterable[str]) -> None:
        """Take tensors out that no node makes or reads any more."""
        for name in names:
            self.tensors.pop(name, None)
            self.sources.pop(name, None)
            self.hidden.discard(name)
            self.shown.discard(name)

    def outputs(self) -> list[str]:
        """Names of what nodes make and nothing reads, but for what's hidden; and of what's shown besides."""
        last = [name for name in self.made() if not self.tensors[name].readers and name not in self.hidden]
        return [*last, *(name for name in self.tensors if name in self.shown and name not in last)]

    def made(self) -> list[str]:
        """Names of all that nodes make."""
        return [name for node in self.nodes for name in node.outputs if name]

    def replace_input(self, node: Node, old: str, new: str) -> None:
        """Let a node read another tensor; `sort` then, as the node that makes it may come later."""
        count = node.inputs.count(old)
        node.inputs = [new if name == old else name for name in node.inputs]
        self.tensors[old].readers -= count
        self.tensors[new].readers += count

    def rewrite(self, node: Node, setting: Setting) -> None:
        """Let a node be another one that makes the same tensors; what nothing reads then goes.

        Args:
            node: Of this network.
            setting: Drawn.
        """
        inputs = [self._connected(operand) for operand in setting.inputs]
        for name in filter(None, node.inputs):
            self.tensors[name].readers -= 1
        node.op, node.inputs, node.piece = setting.op, inputs, None
        node.attributes, node.domains = dict(setting.attributes), dict(setting.domains)
        for place, name in enumerate(filter(None, node.outputs)):
            self.tensors[name].told = setting.told.get(place)
        self._forget_unread()

    def copy(self) -> Draft:
        """A copy of the network."""
        nodes = [replace(node, inputs=list(node.inputs), outputs=list(node.outputs)) for node in self.nodes]
        tensors = {name: replace(tensor) for name, tensor in self.tensors.items()}
        sources = {name: tensors[name] for name in self.sources}
        return Draft(self.opset, nodes, tensors, sources, set(self.hidden), set(self.shown), self.named)

    def undone(self, added: Sequence[Node], moved: Iterable[tuple[Node, list[str]]], tensors: int) -> None:
        """Undo the last nodes.

        Args:
            added: The nodes.
            moved: Nodes that read other tensors since, with those that they read before; the latest first.
            tensors: How many there were.
        """
        for node, inputs in moved:
            node.inputs = inputs
        self.nodes = [node for node in self.nodes if node not in added]
        self.forget(list(self.tensors)[tensors:])
        for tensor in self.tensors.values():
            tensor.readers = 0
        for node in self.nodes:
            for name in filter(None, node.inputs):
                self.tensors[name].readers += 1

    def sort(self) -> None:
        """Put nodes in an order in which they can be computed, as near to the present one as possible."""
        done = set(self.tensors) - set(self.made())
        left, ordered = self.nodes, []
        while left:
            later = []
            for node in left:
                if all(not name or name in done for name in node.inputs):
                    ordered.append(node)
                    done.update(node.outputs)
                else:
                    later.append(node)
            if len(later) == len(left):
                names = ", ".join(node.op for node in left)
                raise AssertionError(f"these read each other in a circle: {names}")
            left = later
        self.nodes = ordered

    def _replaces(self, name: str, tensor: Tensor) -> bool:
        return self.tensors[name].free and self.tensors[name].type == tensor.type

    def _forget_unread(self) -> None:
        made = set(self.made())
        self.forget([name for name, tensor in self.tensors.items() if not tensor.readers and name not in made])

    def _connected(self, operand: Operand | None) -> str:
        if operand is None:
            return ""
        if operand.name is not None:
            tensor = self.tensors[operand.name]
        elif operand.array is not None:
            tensor = self.constant(operand.array)
        else:
            tensor = self.source(operand.type, operand.port.values if operand.port else None)
            tensor.wish = operand.port.domain if operand.port else None
        tensor.readers += 1
        return tensor.name

    def _tensor(self, made: TensorType, values: Range | None = None) -> Tensor:
        tensor = Tensor(f"t{self.named}", made, values)
        self.named += 1
        self.tensors[tensor.name] = tensor
        return tensor
