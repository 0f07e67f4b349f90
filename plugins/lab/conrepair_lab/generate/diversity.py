"""How diverse networks are, after GenCoG's three measures, and what would make them more so.

- vertex: for each operator the settings seen (shapes and attributes, by bins) of an estimated number of them, capped
  at 1; the mean over operators;
- edge: the ordered pairs of operators seen, one feeding the other, of all pairs;
- structural: the different ancestries of nodes, by operators, of all nodes.

What was seen is told as JSON, too, of which what was seen in other processes is put together.
"""

from __future__ import annotations

import collections
import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.settings.setting import Setting

_DRAWN = 3
"""Operators of which the one that was used least is taken."""

_BINS_OF_SIZES = 4
_RANKS = 5
"""As GenCoG has them: shapes of at most so many axes, of so many sizes each."""


@dataclass
class Diversity:
    """Counts of what was seen in some networks: operators, pairs, settings, ancestries.

    Attributes:
        operators: Names of those that may be there.
        settings: By operator, those seen, by their tokens.
        edges: Pairs of operators of which one feeds the other.
        ancestries: Those seen, by their tokens.
        nodes: How many there were, by operator.
        attributes: By operator, the values seen of each attribute, by bins and their tokens.
        ranks: By operator, the highest rank of what it read, and whether it read several tensors.
        ones: How many sizes of what nodes make are 1.
        sizes: How many there are.
    """

    operators: Collection[str]
    settings: dict[str, set[str]] = field(default_factory=lambda: collections.defaultdict(set))
    edges: set[tuple[str, str]] = field(default_factory=set)
    ancestries: set[str] = field(default_factory=set)
    nodes: collections.Counter[str] = field(default_factory=collections.Counter)
    attributes: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    ranks: dict[str, tuple[int, bool]] = field(default_factory=dict)
    ones: int = 0
    sizes: int = 0

    def add(self, draft: Draft) -> None:
        """Look at a network."""
        producers = draft.producers()
        ancestry: dict[str, str] = {}
        for node in draft.nodes:
            self.nodes[node.op] += 1
            shapes = [draft.tensors[name].type.shape for name in node.inputs if name]
            self.settings[node.op].add(_token(_setting(shapes, node.attributes)))
            for name, value in node.attributes.items():
                self._values(node.op, name).add(_token(binned(value)))
            self._read(node.op, max(map(len, shapes), default=0), len(shapes) > 1)
            above = [producers[name] for name in node.inputs if name in producers]
            self.edges.update((other.op, node.op) for other in above)
            own = _token((node.op, *(ancestry.get(name, "") for name in node.inputs)))
            self.ancestries.add(own)
            ancestry.update(dict.fromkeys(filter(None, node.outputs), own))
            made = [size for name in filter(None, node.outputs) for size in draft.tensors[name].type.shape]
            self.ones += sum(size == 1 for size in made)
            self.sizes += sum(size is not None for size in made)

    def as_json(self) -> dict[str, Any]:
        """What was seen, but for the operators that may be there."""
        return {
            "nodes": dict(sorted(self.nodes.items())),
            "edges": sorted(map(list, self.edges)),
            "settings": {op: sorted(self.settings[op]) for op in sorted(self.settings)},
            "ancestries": sorted(self.ancestries),
            "attributes": {
                op: {name: sorted(values[name]) for name in sorted(values)}
                for op, values in sorted(self.attributes.items())
            },
            "ranks": {op: list(self.ranks[op]) for op in sorted(self.ranks)},
            "sizes": [self.ones, self.sizes],
        }

    def add_seen(self, seen: Mapping[str, Any]) -> None:
        """Add what was seen in other networks.

        Args:
            seen: As `as_json` tells it.
        """
        self.nodes.update(seen["nodes"])
        self.edges.update((above, below) for above, below in seen["edges"])
        for op, tokens in seen["settings"].items():
            self.settings[op].update(tokens)
        self.ancestries.update(seen["ancestries"])
        for op, values in seen["attributes"].items():
            for name, tokens in values.items():
                self._values(op, name).update(tokens)
        for op, (rank, several) in seen["ranks"].items():
            self._read(op, rank, several)
        self.ones += seen["sizes"][0]
        self.sizes += seen["sizes"][1]

    def measures(self) -> dict[str, Any]:
        """How diverse it is, for people and programs."""
        return {
            "edge": round(self.edge, 4),
            "vertex": round(self.vertex, 4),
            "structural": round(self.structural, 4),
            "ones": round(self.ones / max(1, self.sizes), 4),
            "operators": len(self.operators),
            "unseen": sorted(set(self.operators) - self.nodes.keys()),
        }

    def rarest(self, operators: Sequence[str], random: Random) -> str:
        """The operator that was used least, of some that are drawn.

        Args:
            operators: Names, of which they're drawn.
            random: By which.
        """
        return min(random.choices(operators, k=_DRAWN), key=lambda op: self.nodes[op])

    def knows(self, setting: Setting) -> bool:
        """Whether a setting of an operator was seen, by bins."""
        shapes = [operand.type.shape for operand in setting.inputs if operand is not None]
        return _token(_setting(shapes, setting.attributes)) in self.settings.get(setting.op, ())

    @property
    def vertex(self) -> float:
        """The share of possible settings of operators that was seen."""
        shares = [min(1.0, len(self.settings[op]) / self._space(op)) for op in self.operators if op in self.settings]
        return sum(shares) / max(1, len(self.operators))

    @property
    def edge(self) -> float:
        """The share of all pairs of operators that was seen."""
        return len(self.edges) / max(1, len(self.operators)) ** 2

    @property
    def structural(self) -> float:
        """The share of nodes whose ancestry no other node has."""
        return len(self.ancestries) / max(1, self.nodes.total())

    def _values(self, op: str, name: str) -> set[str]:
        return self.attributes.setdefault(op, {}).setdefault(name, set())

    def _read(self, op: str, rank: int, several: bool) -> None:
        highest, before = self.ranks.get(op, (0, False))
        self.ranks[op] = (max(highest, rank), before or several)

    def _space(self, op: str) -> int:
        rank, several = self.ranks.get(op, (0, False))
        choices = math.prod(map(len, self.attributes.get(op, {}).values()))
        return int(_BINS_OF_SIZES ** min(rank, _RANKS) * (1 + several) * (math.floor(math.log2(choices)) + 1))


def _token(value: Any) -> str:
    """A short text for a value, the same in each process."""
    return hashlib.blake2b(repr(value).encode(), digest_size=6).hexdigest()


def _setting(shapes: list[tuple[Any, ...]], attributes: Mapping[str, Any]) -> Any:
    return (tuple(map(binned, shapes)), tuple((name, binned(attributes[name])) for name in sorted(attributes)))


def binned(value: Any) -> Any:
    """A size or an attribute by bins: 0, 1, 2 to 3, 4 to 7, and so on; reals by their power of ten and sign."""
    if isinstance(value, tuple | list):
        return tuple(map(binned, value))
    if isinstance(value, bool | str | bytes) or value is None:
        return str(value)
    if isinstance(value, int):
        return int(math.copysign(min(abs(value).bit_length(), _BINS_OF_SIZES), value))
    if isinstance(value, float):
        return (value > 0, 0 if value == 0 else math.floor(math.log10(abs(value))))
    return str(type(value))
