"""How a network grows: an operator behind tensors that are there, or in front of one that no node makes yet."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cache
from random import Random

from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.graph import Draft, Tensor
from conrepair_lab.generate.learned.placing import Learned
from conrepair_lab.generate.settings.domains import Domain
from conrepair_lab.generate.settings.drawing import Drawing, Fresh, Source, drawn_settings
from conrepair_lab.generate.settings.ports import NotAllowedError, Operand, Port, Support
from conrepair_lab.generate.settings.schemas import dtypes_of, schema_of
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.solving import Solving
from conrepair_lab.generate.settings.tensors import value_in
from conrepair_lab.generate.specifications.specification import specifications, spoken
from conrepair_lab.generate.wishes import Wishes

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

_LAST = 40.0
"""How much more welcome the end of a chain is in a network that is to be one."""

_STILL = 0.1
"""How welcome what depends on no input is before an operator reads what does; as an operator's only inputs, too."""

_REJECTED = 0.9
"""How likely a setting that was there already is drawn anew (as GenCoG does)."""

_TRIES, _DEEP_TRIES = 12, 5
"""Settings of one operator that are drawn before another is chosen; in a network that is to be deep."""

_FITTING_TRIES = 60
"""Settings of an operator that are drawn to see whether one is within the wishes."""


class Pool(Source):
    """A source of tensors that a draft has already; new ones where none fits.

    Args:
        draft: The network.
        most: Elements that a tensor may have.
        wanted: How welcome a tensor is, by name.
        moving: Names of tensors that depend on sources.
    """

    def __init__(self, draft: Draft, most: int, wanted: Callable[[str], float], moving: Container[str]) -> None:
        self._fresh = Fresh(most)
        self._moving = moving
        self._wanted = wanted
        self._free = [tensor for tensor in draft.tensors.values() if tensor.free]
        self.fitted = False
        self.moves = False

    def take(self, port: Port, random: Random) -> Operand:
        if port.values is None and random.random() >= _FRESH:
            fitting = [
                tensor
                for tensor in self._free
                if tensor.type.dtype in port.dtypes and port.pattern.allows(tensor.type.shape)
            ]
            if fitting:
                self.fitted = True
                chosen = random.choices(fitting, [self._welcome(tensor) for tensor in fitting])[0]
                self.moves |= chosen.name in self._moving
                return Operand(chosen.type, name=chosen.name, port=port, array=chosen.told)
        self.moves = True
        return self._fresh.take(port, random)

    def told(self, dtypes: tuple[str, ...], domain: Domain, random: Random) -> Operand | None:
        fitting = [
            Operand(tensor.type, name=tensor.name, array=tensor.told)
            for tensor in self._free
            if tensor.told is not None
            and tensor.type.rank < 2
            and tensor.type.dtype in dtypes
            and domain.allows(value_in(tensor.told))
        ]
        return random.choice(fitting) if fitting and random.random() < _TOLD else None

    def _welcome(self, tensor: Tensor) -> float:
        moves = self.moves or tensor.name in self._moving
        shape = tensor.type.shape
        flat = 2 * shape.count(1) >= max(1, len(shape))  # what's made of it would be so, too, and so on
        weight = self._wanted(tensor.name) * _READ ** min(tensor.readers, 4) * (_FLAT if flat else 1)
        return weight if moves else weight * _STILL


@dataclass
class Growing:
    """Adds operators to a draft.

    Attributes:
        wishes: What the network should be like; with one output, each node behind reads what was the output before.
        random: What is drawn comes from here.
        support: Element types that may be used.
        seen: What guides the choice towards what is new.
        most: Elements that a tensor may have.
        deep: Whether each node behind reads the end of the longest chain.
        learned: Instances, of which some are placed.
        operators: Names of those that may be added.
        backward: How likely an operator is put in front.
    """

    wishes: Wishes
    random: Random
    support: Support
    seen: Diversity
    most: int
    deep: bool = False
    learned: Learned | None = None

    def __post_init__(self) -> None:
        self.operators, self.backward = fitting(self.wishes), self.wishes.backward

    def grow(self, draft: Draft, nodes: int) -> None:
        """Add operators until there are so many."""
        refused = 0
        while len(draft.nodes) < nodes and refused < 50 + 20 * nodes:
            if self.learned is not None and (not self.operators or self.random.random() < self.learned.share):
                added = self.learned.place(draft, self, nodes - len(draft.nodes))
            else:
                added = self._added(draft, self.seen.rarest(self.operators, self.random))
            refused += not added

    def _added(self, draft: Draft, op: str) -> bool:
        still = specifications()[op].still
        front = draft.nodes and (still or self.random.random() < self.backward)
        replaceable = self._replaceable(draft, op) if front else []
        if replaceable:
            for tensor in self.random.sample(replaceable, min(3, len(replaceable))):
                setting = self._in_front(draft, op, tensor)
                if setting is not None:
                    draft.add(setting, instead_of=tensor.name)
                    return True
            return False
        if still and self.random.random() >= _STILL:
            return False
        setting = self._behind(draft, op)
        if setting is None:
            return False
        draft.add(setting)
        return True

    def _replaceable(self, draft: Draft, op: str) -> list[Tensor]:
        """Sources in front of which an operator can be put; one that moves nothing only where other sources do."""
        made = dtypes_of(op, draft.opset, schema_of(op, draft.opset).outputs[0].type_str)
        found = [
            tensor
            for name, tensor in draft.sources.items()
            if tensor.values is None and name not in draft.shown and tensor.type.dtype in made
        ]
        still = specifications()[op].still
        if found and (still or self.wishes.single or self.deep):
            origins = draft.origins().values()
            if self.wishes.single or self.deep:  # where the one input is, or the longest chain begins
                found = [max(found, key=lambda tensor: sum(tensor.name in own for own in origins))]
            if still:
                found = [tensor for tensor in found if {tensor.name} not in origins]
        return found

    def _behind(self, draft: Draft, op: str) -> Setting | None:
        made_by = {name: node.op for node in draft.nodes for name in node.outputs}
        last = set(draft.outputs() if self.wishes.single else draft.deepest() if self.deep and draft.nodes else ())
        moving = draft.reached(draft.sources, _still())
        pool = Pool(
            draft,
            self.most,
            lambda name: (
                (1.0 if (made_by.get(name), op) in self.seen.edges else _NEW) * (_LAST if name in last else 1)
            ),
            moving,
        )
        connected = bool(draft.nodes) and (bool(last) or self.random.random() >= _ISLAND)
        for _ in range(_DEEP_TRIES if self.deep else _TRIES):
            pool.moves = False
            try:
                setting = spoken(Drawing(op, draft.opset, self.random, self.support, source=pool, most=self.most))
            except NotAllowedError:
                continue
            read = {operand.name for operand in setting.inputs if operand is not None and operand.name}
            if self.wishes.single and not (last <= read and _one_output(setting)):
                continue
            if self.deep and last.isdisjoint(read) and draft.nodes:
                continue
            if not pool.moves and self.random.random() >= _STILL:
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
        try:
            setting = spoken(Solving(op, draft.opset, self.random, self.support, target=tensor.type, most=self.most))
            setting.solved()
        except NotAllowedError:
            return None
        allowed = self.support.allows(setting) and (not self.wishes.single or _one_output(setting))
        return setting if allowed else None


@cache
def _still() -> frozenset[str]:
    """Operators through which no value moves another."""
    return frozenset(op for op, item in specifications().items() if item.still)


def _one_output(setting: Setting) -> bool:
    """Whether a node makes one tensor."""
    return sum(made is not None for made in setting.outputs) == 1


# Which operators fit wishes at all: found by drawing settings of each.


def fits(op: str, wishes: Wishes) -> bool:
    """Whether some setting of an operator is within the wishes."""
    random, support = Random(0), wishes.narrowed(Support())
    settings = drawn_settings(op, wishes.opset, random, support, wishes.most, _FITTING_TRIES)
    return any(not wishes.single or _one_output(setting) for setting in settings)


def fitting(wishes: Wishes) -> tuple[str, ...]:
    """Operators that fit: the others needn't be tried again and again; all of them where tensors may be any.

    Args:
        wishes: Of which types, ranks and elements count.
    """
    usual = Wishes()
    if (wishes.dtypes, wishes.ranks) == (usual.dtypes, usual.ranks) and wishes.most >= usual.most:
        return wishes.names
    return _fitting(wishes.names, wishes.dtypes, wishes.ranks, wishes.most, wishes.opset) or wishes.names


@cache
def _fitting(
    names: tuple[str, ...], dtypes: tuple[str, ...], ranks: tuple[int, int], most: int, opset: int
) -> tuple[str, ...]:
    wishes = Wishes(operators=names, dtypes=dtypes, ranks=ranks, most=most, opset=opset)
    return tuple(op for op in names if fits(op, wishes))
