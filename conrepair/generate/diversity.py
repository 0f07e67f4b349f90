"""How diverse networks are, after GenCoG's three measures, and what would make them more so.

- vertex: for each operator the settings seen (shapes and attributes, by bins) of an estimated number of them, capped
  at 1; the mean over operators;
- edge: the ordered pairs of operators seen, one feeding the other, of all pairs;
- structural: the different ancestries of nodes, by operators, of all nodes.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from conrepair.generate.graph import Draft, Node, Tensor
from conrepair.generate.setting import Setting

__all__ = ["Diversity", "binned", "settings_of"]

_BINS_OF_SIZES = 4
_RANKS = 5
"""As GenCoG has them: shapes of at most so many axes, of so many sizes each."""


@dataclass
class Diversity:
    """What was seen in some networks.

    Attributes:
        operators: Names of those that may be there.
        settings: By operator, those seen.
        edges: Pairs of operators of which one feeds the other.
        ancestries: Those seen, numbered.
        nodes: How many there were, by operator.
        attributes: By operator, the values seen of each attribute, by bins.
        ranks: By operator, the highest rank of what it read, and whether it read several tensors.
    """

    operators: Collection[str]
    settings: dict[str, set[Any]] = field(default_factory=lambda: collections.defaultdict(set))
    edges: set[tuple[str, str]] = field(default_factory=set)
    ancestries: dict[Any, int] = field(default_factory=dict)
    nodes: collections.Counter[str] = field(default_factory=collections.Counter)
    attributes: dict[str, dict[str, set[Any]]] = field(default_factory=dict)
    ranks: dict[str, tuple[int, bool]] = field(default_factory=dict)

    def add(self, draft: Draft) -> None:
        """Look at a network."""
        producers = draft.producers()
        ancestry: dict[str, int] = {}
        for node in draft.nodes:
            self.nodes[node.op] += 1
            self.settings[node.op].add(settings_of(node, draft.tensors))
            for name, value in node.attributes.items():
                self.attributes.setdefault(node.op, {}).setdefault(name, set()).add(binned(value))
            read = [draft.tensors[name].type.rank for name in node.inputs if name]
            highest, several = self.ranks.get(node.op, (0, False))
            self.ranks[node.op] = (max([highest, *read]), several or len(read) > 1)
            above = [producers[name] for name in node.inputs if name in producers]
            self.edges.update((other.op, node.op) for other in above)
            key = (node.op, *(ancestry.get(name, -1) for name in node.inputs))
            own = self.ancestries.setdefault(key, len(self.ancestries))
            ancestry.update(dict.fromkeys(filter(None, node.outputs), own))

    def knows(self, setting: Setting) -> bool:
        """Whether a setting of an operator was seen, by bins."""
        shapes = [operand.type.shape for operand in setting.inputs if operand is not None]
        return _setting(shapes, setting.attributes) in self.settings.get(setting.op, ())

    @property
    def vertex(self) -> float:
        """Of the settings that operators may have, the share that was seen."""
        return sum(min(1.0, len(self.settings[op]) / self._space(op)) for op in self.operators) / len(self.operators)

    @property
    def edge(self) -> float:
        """Of all pairs of operators, the share that was seen."""
        return len(self.edges) / len(self.operators) ** 2

    @property
    def structural(self) -> float:
        """Of all nodes, the share whose ancestry is like no other's."""
        return len(self.ancestries) / max(1, self.nodes.total())

    def _space(self, op: str) -> int:
        rank, several = self.ranks.get(op, (0, False))
        choices = math.prod(map(len, self.attributes.get(op, {}).values()))
        return int(_BINS_OF_SIZES ** min(rank, _RANKS) * (1 + several) * (math.floor(math.log2(choices)) + 1))


def settings_of(node: Node, tensors: Mapping[str, Tensor]) -> Any:
    """What a node reads and how it's set, by bins."""
    return _setting([tensors[name].type.shape for name in node.inputs if name], node.attributes)


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
