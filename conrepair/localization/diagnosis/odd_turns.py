"""In a loop that's unrolled, each turn has the same operators: one that has more, fewer or others is at fault."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node
from conrepair.localization.diagnosis.differences import called, kind_of_extra
from conrepair.localization.diagnosis.extras import together
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.pairing import of_one_family
from conrepair.localization.diagnosis.region import Region

__all__ = ["odd_operators"]

_FEWEST = 3  # turns that agree
_RARE = 3  # times as often what's usual occurs, at least: the first turns and the last ones lack parts
_LONGEST = 3  # operators that stand in the way

Place = tuple[object, object]


@dataclass(frozen=True)
class _Way:
    """From one node to another: directly, or through others.

    Attributes:
        begin: What's read.
        between: Nodes on the way.
        end: What reads.
        alone: Whether those on the way read nothing else.
    """

    begin: Node
    between: tuple[Node, ...]
    end: Node
    alone: bool

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(node.op for node in self.between)


def odd_operators(region: Region, turns: int) -> Iterator[Finding]:
    """Operators that stand, are missing, or are others where all other turns have the same.

    Args:
        region: With an unrolled loop in the target.
        turns: How many there are.
    """
    nodes = region.target.nodes
    producers = {name: node for node in nodes for name in node.outputs}
    readers: dict[str, dict[str, Node]] = defaultdict(dict)
    for node in nodes:
        for name in node.inputs:
            if name in producers:
                readers[producers[name].name][node.name] = node
    places: dict[Place, dict[tuple[str, ...], list[_Way]]] = defaultdict(lambda: defaultdict(list))
    for way in _ways(nodes, readers):
        before = tuple(sorted(producers[name].op for name in way.begin.inputs if name in producers))
        behind = tuple(sorted(node.op for node in readers[way.end.name].values()))
        places[(way.begin.op, before), (way.end.op, behind)][way.operators].append(way)
    for kinds in places.values():
        for (_, odd), (_, usual) in itertools.permutations(kinds.items(), 2):
            if _is_rare(len(odd), len(usual), turns):
                for way in _instead(odd, usual):
                    yield from _odd_way(way, usual, region)


def _odd_way(way: _Way, usual: Sequence[_Way], region: Region) -> Iterator[Finding]:
    """What's on a way that isn't on most that begin and end alike, or isn't there, or is another operator."""
    common = usual[0]
    if way.between and not common.between and way.alone:
        yield from _extra(way, region)
    elif not way.between and all(other.alone for other in usual):
        yield _lacking(way, common, region)
    elif len(way.between) == len(common.between) == 1 and of_one_family(*way.operators, *common.operators):
        (node,), (other,) = way.between, common.between
        words = f"`{node.layer}` is {node.native}, where other turns have {other.native}"
        yield Finding(Kind.GRAPH, words, region.source.layers, (node.layer,), weight=0.8)


def _is_rare(odd: int, usual: int, turns: int) -> bool:
    """Whether so few turns have it that it's none of what a turn consists of."""
    return usual >= max(_FEWEST, _RARE * odd) and turns >= _RARE * odd


def _instead(odd: Sequence[_Way], usual: Sequence[_Way]) -> Iterator[_Way]:
    """Ways whose begin and end lack a usual one: from one turn to the next there are ways besides."""
    begins, ends = Counter(way.begin.name for way in usual), Counter(way.end.name for way in usual)
    for way in odd:
        if begins[way.begin.name] < max(begins.values()) and ends[way.end.name] < max(ends.values()):
            yield way


def _extra(way: _Way, region: Region) -> Iterator[Finding]:
    for step in together(way.between, region.target.graph):
        kind, words = kind_of_extra(step, region)
        what = f"{called(step)} `{step.layer}` is in one turn of the loop, and not in others{words}"
        layers = (*step.layers, way.begin.layer)
        yield Finding(kind, what, region.source.layers, layers, f"extra {step.layer}", weight=0.9)


def _lacking(way: _Way, usual: _Way, region: Region) -> Finding:
    words = f"{usual.between[0].native} is missing between `{way.begin.layer}` and `{way.end.layer}`"
    layers = (way.begin.layer, way.end.layer)
    return Finding(
        Kind.GRAPH, f"{words}: other turns have it", region.source.layers, layers, f"missing {layers}", weight=0.9
    )


def _ways(nodes: Sequence[Node], readers: Mapping[str, Mapping[str, Node]]) -> Iterator[_Way]:
    for begin in nodes:
        waiting: list[tuple[Node, ...]] = [()]
        while waiting:
            between = waiting.pop()
            alone = all(len(list(filter(None, node.inputs))) == 1 for node in between)
            for reader in readers[(between or (begin,))[-1].name].values():
                yield _Way(begin, between, reader, alone)
                if len(between) < _LONGEST:
                    waiting.append((*between, reader))
