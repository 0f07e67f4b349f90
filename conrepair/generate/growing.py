"""How a network grows: an operator behind tensors that are there, or in front of one that no node makes yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from conrepair.generate.diversity import Diversity
from conrepair.generate.domains import Domain
from conrepair.generate.drawing import Drawing, Fresh, Source
from conrepair.generate.graph import Draft, Tensor
from conrepair.generate.learned.placing import Learned
from conrepair.generate.ports import NotAllowedError, Operand, Port, Support
from conrepair.generate.setting import Setting
from conrepair.generate.solving import Solving
from conrepair.generate.specifications.specification import specifications
from conrepair.generate.tensors import value_in

__all__ = ["Growing", "Pool", "one_output"]

_FRESH = 0.08
"""How likely an input gets a new tensor although one that is there would do."""

_ISLAND = 0.05
"""How likely an operator needn't read anything that is there."""

_READ = 0.25
"""How welcome a tensor is still for each input that reads it."""

_TOLD = 0.5
"""How likely a shape, say, is read from where the network has computed it, in place of a new constant."""

_FLAT = 0.3
"""How welcome a tensor is whose sizes are mostly 1."""

_NEW = 3.0
"""How much more welcome a tensor is whose maker the operator hasn't read from yet."""

_LAST = 20.0
"""How much more welcome the output is in a network that has one."""

_DRAWN = 3
"""Operators of which the one that was used least is taken."""

_REJECTED = 0.9
"""How likely a setting that was there already is drawn anew (as GenCoG does)."""

_TRIES = 12
"""Settings of one operator that are drawn before another is chosen."""


class Pool(Source):
    """A source of tensors that a draft has already; new ones where none fits.

    Args:
        draft: The network.
        most: Elements that a tensor may have.
        wanted: How welcome a tensor is, by name.
    """

    def __init__(self, draft: Draft, most: int, wanted: Callable[[str], float]) -> None:
        self._fresh = Fresh(most)
        free = [tensor for tensor in draft.tensors.values() if tensor.free]
        self._free = [
            (item, wanted(item.name) * _READ ** min(item.readers, 4) * (_FLAT if _is_flat(item) else 1))
            for item in free
        ]
        self.fitted = False

    def take(self, port: Port, random: Random) -> Operand:
        if port.values is None and random.random() >= _FRESH:
            fitting = [
                (tensor, weight)
                for tensor, weight in self._free
                if tensor.type.dtype in port.dtypes and port.pattern.allows(tensor.type.shape)
            ]
            if fitting:
                self.fitted = True
                chosen = random.choices(fitting, [weight for _, weight in fitting])[0][0]
                return Operand(chosen.type, name=chosen.name, port=port, array=chosen.told)
        return self._fresh.take(port, random)

    def told(self, dtypes: tuple[str, ...], domain: Domain, random: Random) -> Operand | None:
        fitting = [
            Operand(tensor.type, name=tensor.name, array=tensor.told)
            for tensor, _ in self._free
            if tensor.told is not None
            and tensor.type.rank < 2
            and tensor.type.dtype in dtypes
            and domain.allows(value_in(tensor.told))
        ]
        return random.choice(fitting) if fitting and random.random() < _TOLD else None


@dataclass
class Growing:
    """Adds operators to a draft.

    Attributes:
        random: What is drawn comes from here.
        operators: Names of those that may be added.
        support: Element types that may be used.
        most: Elements that a tensor may have.
        backward: How likely an operator is put in front.
        seen: What guides the choice towards what is new.
        single: Whether the network has one output: each node behind reads what was the output before.
        learned: Instances, of which some are placed.
        named: Names of operators that instances may be about; all for none.
        exclude: Operators that no instance may have.
    """

    random: Random
    operators: Sequence[str]
    support: Support = field(default_factory=Support)
    most: int = 4096
    backward: float = 0.3
    seen: Diversity = field(default_factory=lambda: Diversity(()))
    single: bool = False
    learned: Learned | None = None
    named: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def grow(self, draft: Draft, nodes: int) -> None:
        """Add operators until there are so many."""
        refused = 0
        while len(draft.nodes) < nodes and refused < 50 + 20 * nodes:
            if self.learned is not None and (not self.operators or self.random.random() < self.learned.share):
                added = self._placed(self.learned, draft, nodes - len(draft.nodes))
            else:
                added = self._added(draft, self._operator())
            refused += not added

    def _placed(self, learned: Learned, draft: Draft, room: int) -> bool:
        return learned.place(
            draft,
            self.random,
            self.support,
            self.seen,
            operators=self.named,
            exclude=self.exclude,
            most=self.most,
            room=room,
            single=self.single and bool(draft.nodes),
        )

    def _operator(self) -> str:
        """The one that was used least, of some that are drawn."""
        return min(self.random.choices(self.operators, k=_DRAWN), key=lambda op: self.seen.nodes[op])

    def _added(self, draft: Draft, op: str) -> bool:
        replaceable = [
            tensor for name, tensor in draft.sources.items() if tensor.values is None and name not in draft.shown
        ]
        if draft.nodes and replaceable and self.random.random() < self.backward:
            for tensor in self.random.sample(replaceable, min(3, len(replaceable))):
                setting = self._in_front(draft, op, tensor)
                if setting is not None:
                    draft.add(setting, instead_of=tensor.name)
                    return True
            return False
        setting = self._behind(draft, op)
        if setting is None:
            return False
        draft.add(setting)
        return True

    def _behind(self, draft: Draft, op: str) -> Setting | None:
        body = specifications()[op].body
        made_by = {name: node.op for node in draft.nodes for name in node.outputs}
        last = set(draft.outputs()) if self.single else set()
        pool = Pool(
            draft,
            self.most,
            lambda name: (
                (1.0 if (made_by.get(name), op) in self.seen.edges else _NEW) * (_LAST if name in last else 1)
            ),
        )
        connected = bool(draft.nodes) and (self.single or self.random.random() >= _ISLAND)
        for _ in range(_TRIES):
            setting = Drawing(op, draft.opset, self.random, self.support, source=pool, most=self.most)
            try:
                body(setting)
            except NotAllowedError:
                continue
            read = {operand.name for operand in setting.inputs if operand is not None and operand.name}
            if self.single and not (last <= read and one_output(setting)):
                continue
            if not connected or read:
                if self._welcome(setting) and self.support.allows(setting):
                    return setting
            elif not pool.fitted:
                return None
        return None

    def _welcome(self, setting: Setting) -> bool:
        return self.random.random() >= _REJECTED or not self.seen.knows(setting)

    def _in_front(self, draft: Draft, op: str, tensor: Tensor) -> Setting | None:
        setting = Solving(op, draft.opset, self.random, self.support, target=tensor.type, most=self.most)
        try:
            specifications()[op].body(setting)
            setting.solved()
        except NotAllowedError:
            return None
        fits = self.support.allows(setting) and (not self.single or one_output(setting))
        return setting if fits else None


def _is_flat(tensor: Tensor) -> bool:
    """Whether half of a tensor's sizes, or more, are 1: what's made of it would be so, too, and so on."""
    return 2 * tensor.type.shape.count(1) >= max(1, tensor.type.rank)


def one_output(setting: Setting) -> bool:
    """Whether a node makes one tensor."""
    return sum(made is not None for made in setting.outputs) == 1
