"""Nodes that are written down rather than drawn: what forms and patterns put into a network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from random import Random
from typing import Any

import numpy as np

from conrepair_lab.generate.graph import Draft, Node
from conrepair_lab.generate.pieces import Piece
from conrepair_lab.generate.settings.drawing import Fresh, chosen_dtype
from conrepair_lab.generate.settings.ports import MAX_RANK, NotAllowedError, Operand, Port, Support
from conrepair_lab.generate.settings.reading import Reading
from conrepair_lab.generate.settings.schemas import dtypes_of, schema_of
from conrepair_lab.generate.settings.shapes import AnyShape
from conrepair_lab.generate.settings.tensors import FLOATS, REALS, Range, TensorType, numpy_type
from conrepair_lab.generate.specifications.specification import specifications, spoken


class Weaver:
    """Adds nodes to a draft; each must be allowed by its operator's specification, which also says what it makes.

    Args:
        draft: The network.
        random: What's drawn comes from here.
        support: Element types that may be used.
        most: Elements that a tensor may have.
        origin: What the nodes are from.

    """

    def __init__(self, draft: Draft, random: Random, support: Support, most: int, origin: str) -> None:
        self.draft, self.random = draft, random
        self._support, self._fresh, self._most, self._origin = support, Fresh(most), most, origin
        self._added: list[Node] = []
        self._moved: list[tuple[Node, list[str]]] = []

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What's added inside is added whole or not at all.

        Raises:
            NotAllowedError: if something wasn't allowed; the draft is then as before.
        """
        self._added, self._moved = [], []
        tensors, hidden, shown = len(self.draft.tensors), set(self.draft.hidden), set(self.draft.shown)
        try:
            yield
        except NotAllowedError:
            self.draft.undone(self._added, reversed(self._moved), tensors)
            self.draft.hidden, self.draft.shown = hidden, shown
            raise

    def one(self, choices: Sequence[Any]) -> Any:
        """One of what a pattern has several of."""
        return self.random.choice(choices)

    def pick(
        self,
        dtypes: Collection[str] = FLOATS,
        *,
        rank: int | Collection[int] = range(1, MAX_RANK + 1),
        least: int = 1,
        new: bool = False,
    ) -> str:
        """A tensor of the network.

        Args:
            dtypes: Element types that it may have.
            rank: Numbers of axes that it may have.
            least: Smallest size of each axis.
            new: Whether a new one is made where there is none of that sort.

        Raises:
            NotAllowedError: if the network has none, and none is to be made.
        """
        pattern = AnyShape((rank,) if isinstance(rank, int) else tuple(rank), least)
        names = [
            name
            for name, tensor in self.draft.tensors.items()
            if tensor.free and tensor.type.dtype in dtypes and pattern.allows(tensor.type.shape)
        ]
        if names:
            return self.random.choice(names)
        if not new:
            raise NotAllowedError("the network has no tensor of that sort")
        return self.made(dtypes, pattern)

    def made(self, dtypes: Collection[str], pattern: AnyShape) -> str:
        """A new tensor, where the network has none of that sort."""
        drawn = self._fresh.take(Port("", tuple(dtypes), pattern), self.random).type
        return self.new(drawn.dtype, drawn.shape)

    def new(self, dtype: str, shape: Collection[int], values: Range | None = None) -> str:
        """A new tensor that no node makes: an input, or a weight."""
        return self.draft.source(TensorType(dtype, tuple(shape)), values).name

    def constant(self, values: Any, dtype: str = "int64") -> str:
        """A new constant."""
        return self.draft.constant(np.asarray(values, numpy_type(dtype))).name

    def weight(self, *shape: int, dtype: str = "float32", low: float = -1.0, high: float = 1.0) -> str:
        """A new constant of random numbers between two bounds.

        Raises:
            NotAllowedError: if it has too many.
        """
        if prod(shape) > self._most:
            raise NotAllowedError("too many elements")
        drawn = np.random.default_rng(self.random.getrandbits(64)).uniform(low, high, shape)
        return self.constant(drawn if dtype in REALS else np.floor(drawn), dtype)

    def dtype(self, dtypes: Collection[str] = FLOATS) -> str:
        """One of some element types."""
        return chosen_dtype(tuple(dtypes), self.random)

    def type_of(self, name: str) -> TensorType:
        """A tensor's element type and sizes.

        Raises:
            NotAllowedError: if its sizes depend on values.
        """
        made = self.draft.tensors[name].type
        if not made.sized:
            raise NotAllowedError("sizes that depend on values")
        return made

    def node(self, op: str, *inputs: str | None, outputs: int = 1, **attributes: Any) -> str:
        """Add a node; its first output.

        Raises:
            NotAllowedError: if the operator's specification forbids it.
        """
        return self.nodes(op, *inputs, outputs=outputs, **attributes)[0]

    def nodes(self, op: str, *inputs: str | None, outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node; all its outputs.

        Args:
            op: Its operator.
            inputs: Names of tensors; None for those that are left out.
            outputs: How many it has.
            attributes: Those that are said; what the opset has as an input becomes a constant.

        Raises:
            NotAllowedError: if the operator's specification forbids it.
        """
        inputs, attributes = self._by_schema(op, inputs, attributes)
        setting = spoken(
            Reading(
                op,
                self.draft.opset,
                self.random,
                self._support,
                given=[None if name is None else self._operand(name) for name in inputs],
                said=attributes,
                results=[True] * outputs,
            )
        )
        setting.attributes = dict(attributes)
        setting.inputs = [None if name is None else self._operand(name) for name in inputs]
        for made in setting.outputs:
            if made is not None and made.elements > self._most:
                raise NotAllowedError("too many elements")
        if not self._support.allows(setting):
            raise NotAllowedError("it isn't taken")
        node = self.draft.add(setting, origin=self._origin)
        self._added.append(node)
        return node.outputs

    def piece(self, piece: Piece, inputs: Sequence[str]) -> Node:
        """Add a piece as it is.

        Args:
            piece: Of which nothing is known but its types.
            inputs: Names of tensors of those types.
        """
        node = self.draft.place(piece, inputs, self._origin)
        self._added.append(node)
        return node

    def takes_over(self, old: str, new: str) -> None:
        """Let some of the nodes that read one tensor, and aren't of this weaver, read another in its place."""
        readers = [node for node in self.draft.nodes if old in node.inputs and node not in self._added]
        for node in readers:
            if len(readers) == 1 or self.random.random() < 0.5:
                self._moved.append((node, node.inputs))
                self.draft.replace_input(node, old, new)

    def _by_schema(
        self, op: str, inputs: tuple[str | None, ...], said: Mapping[str, Any]
    ) -> tuple[tuple[str | None, ...], dict[str, Any]]:
        """Inputs and attributes as the opset has them: what it has as an input becomes a constant."""
        found, opset = specifications().get(op), self.draft.opset
        if found is None or found.least_opset > opset:
            raise NotAllowedError(f"opset {opset} has no {op}")
        schema = schema_of(op, opset)
        formals = {formal.name: (place, formal.type_str) for place, formal in enumerate(schema.inputs)}
        placed = list(inputs)
        for name in said:
            if name in schema.attributes:
                continue
            if name not in formals:
                raise NotAllowedError(f"opset {opset}'s {op} has no {name}")
            place, variable = formals[name]
            given = (item for item, formal in zip(inputs, schema.inputs, strict=False) if formal.type_str == variable)
            bound = next((self.type_of(item).dtype for item in given if item is not None), None)
            allowed = dtypes_of(op, opset, variable)
            placed += [None] * (place + 1 - len(placed))
            placed[place] = self.constant(said[name], bound or ("int64" if "int64" in allowed else allowed[0]))
        return tuple(placed), {name: value for name, value in said.items() if name in schema.attributes}

    def _operand(self, name: str) -> Operand:
        tensor = self.draft.tensors[name]
        return Operand(self.type_of(name), name=name, array=tensor.value)


Body = Callable[[Weaver], None]
"""Puts a form or a pattern into a network; NotAllowedError where it doesn't fit."""
