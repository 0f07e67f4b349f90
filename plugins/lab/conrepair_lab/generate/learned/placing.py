"""Place instances in a network: their inputs are tensors of the network, adapted ones, or new ones."""

from __future__ import annotations

import collections
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.learned.instances import Instance
from conrepair_lab.generate.settings.ports import NotAllowedError
from conrepair_lab.generate.settings.tensors import REALS, TensorType, element_type
from conrepair_lab.generate.specifications.specification import specifications
from conrepair_lab.generate.weaving import Weaver

if TYPE_CHECKING:
    from conrepair_lab.generate.growing import Growing

ORIGIN = "learned"
"""Of nodes that are instances, or lead to them."""

_FRESH = 0.1
"""How likely an input gets a new tensor although one that is there would do."""

_UNKNOWN = 0.7
"""How likely the operator is one that no specification speaks of."""

_LOOKED_AT = 6
"""Instances of an operator of which one is taken that reads something that is there."""

_TRIES = 12
"""Instances that are tried where one must read the network's output, and give one."""


@dataclass(frozen=True)
class Learned:
    """Instances, by operator.

    Attributes:
        instances: All of them.
        share: How likely one is placed where an operator would be.
    """

    instances: tuple[Instance, ...]
    share: float = 0.15
    _by_op: dict[str, list[Instance]] = field(default_factory=lambda: collections.defaultdict(list), repr=False)

    def __post_init__(self) -> None:
        for item in self.instances:
            self._by_op[item.op].append(item)

    def place(self, draft: Draft, growing: Growing, room: int) -> bool:
        """Put one into a network.

        Args:
            draft: The network; where it's to have one output, that must be read.
            growing: How it grows.
            room: Nodes that may be added.

        Returns:
            Whether it was put in.
        """
        single = growing.wishes.single and bool(draft.nodes)
        for _ in range(_TRIES if single else 1):
            item = self._drawn(draft, growing)
            if item is None:
                return False
            if draft.opset in item.opsets and _allowed(item, growing):
                weaver = Weaver(draft, growing.random, growing.support, growing.most, ORIGIN)
                with suppress(NotAllowedError), weaver.whole():
                    _put(weaver, item, room, single)
                    return True
        return False

    def _drawn(self, draft: Draft, growing: Growing) -> Instance | None:
        known, random = specifications(), growing.random
        names = sorted(op for op in growing.wishes.operators or self._by_op if op in self._by_op)
        unknown = [op for op in names if op not in known]
        if unknown and random.random() < _UNKNOWN:
            names = unknown
        if not names:
            return None
        some = random.choices(self._by_op[growing.seen.rarest(names, random)], k=_LOOKED_AT)
        free = {tensor.type for tensor in draft.tensors.values() if tensor.free}
        fitting = (item for item in some if any(_nearly(made, kind) for kind in item.piece.inputs for made in free))
        return next(fitting, some[0])


def _put(weaver: Weaver, item: Instance, room: int, single: bool) -> None:
    """Put an instance into a network, and what leads to it.

    Raises:
        NotAllowedError: if that makes too many nodes or outputs.
    """
    draft, last = weaver.draft, set(weaver.draft.outputs())
    nodes = len(draft.nodes)
    node = weaver.piece(item.piece, [_input(weaver, item, place, last) for place in range(len(item.ranges))])
    for place, (seen, made) in enumerate(zip(item.ranges, item.piece.inputs, strict=True)):
        if seen is not None and made.dtype in REALS:
            node.domains[place] = seen
    if len(draft.nodes) > nodes + room or (single and len(draft.outputs()) > 1):
        raise NotAllowedError("more nodes, or outputs, than there should be")


def _input(weaver: Weaver, item: Instance, place: int, last: Collection[str]) -> str:
    wanted, values = item.piece.inputs[place], item.values(place)
    if values is None and weaver.random.random() >= _FRESH:
        name = _found(weaver, wanted, last)
        if name is not None:
            return name
    source = weaver.draft.source(wanted, values)
    source.wish = item.ranges[place] if wanted.dtype in REALS else None
    return source.name


def _allowed(item: Instance, growing: Growing) -> bool:
    types, support = (*item.piece.inputs, *item.piece.outputs), growing.support
    return not item.piece.operators & set(growing.wishes.exclude) and all(
        made.elements <= growing.most and support.dtypes((made.dtype,)) and support.ranks((made.rank,))
        for made in types
    )


def _found(weaver: Weaver, wanted: TensorType, last: Collection[str]) -> str | None:
    """A tensor of a type, or one that is made so of another; None where there's none to make it of."""
    free = {name: tensor.type for name, tensor in weaver.draft.tensors.items() if tensor.free}
    exact = [name for name, made in free.items() if made == wanted]
    near = exact or [name for name, made in free.items() if _nearly(made, wanted)]
    able = near or [name for name, made in free.items() if made.elements and wanted.elements and wanted.rank]
    able = [name for name in able if _castable(free[name].dtype, wanted.dtype)]
    if not able:
        return None
    name = weaver.random.choice([name for name in able if name in last] or able)
    return _fitted(weaver, name, wanted)


def _fitted(weaver: Weaver, name: str, wanted: TensorType) -> str:
    """A tensor cast, brought to a number of axes, cut and padded, as far as it takes."""
    if weaver.type_of(name).dtype != wanted.dtype:
        name = weaver.node("Cast", name, to=element_type(wanted.dtype))
    made = weaver.type_of(name)
    if made.elements == wanted.elements and made.shape != wanted.shape:
        return weaver.node("Reshape", name, weaver.constant(list(wanted.shape)))
    if made.rank != wanted.rank:
        spare = made.rank - wanted.rank
        shape = [-1, *made.shape[spare + 1 :]] if spare > 0 else [*[1] * -spare, *made.shape]
        name = weaver.node("Reshape", name, weaver.constant(shape))
    ends = [size - own for own, size in zip(weaver.type_of(name).shape, wanted.shape, strict=True)]
    if any(ends):
        name = weaver.node("Pad", name, weaver.constant([*[0] * wanted.rank, *ends]))
    return name


def _castable(dtype: str, wanted: str) -> bool:
    return dtype == wanted or wanted == "bool" or (wanted in REALS and dtype != "bool")


def _nearly(made: TensorType, wanted: TensorType) -> bool:
    """Whether one node makes a tensor of a type of another."""
    if made.dtype != wanted.dtype:
        return made.shape == wanted.shape and _castable(made.dtype, wanted.dtype)
    return made.elements == wanted.elements or (made.rank == wanted.rank and bool(made.elements and wanted.elements))
