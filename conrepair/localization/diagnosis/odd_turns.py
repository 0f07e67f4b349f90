"""In a loop that's unrolled, each turn has the same operators: one that has more, fewer or others is at fault."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
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
    readers, producers = _readers(region.target.nodes), _producers(region.target.nodes)
    places: dict[Place, list[_Way]] = defaultdict(list)
    for way in _ways(region.target.nodes, readers):
        before = tuple(sorted(producers[name].op for name in way.begin.inputs if name in producers))
        behind = tuple(sorted(node.op for node in readers.get(way.end.name, ())))
        places[(way.begin.op, before), (way.end.op, behind)].append(way)
    for ways in places.values():
        yield from _odd_ways(ways, region, turns)
    yield from _replaced(region, readers, producers, turns)


def _odd_ways(ways: Sequence[_Way], region: Region, turns: int) -> Iterator[Finding]:
    """Ways with more, or with less, in between than most that begin and end alike."""
    kinds: dict[tuple[str, ...], list[_Way]] = defaultdict(list)
    for way in ways:
        kinds[way.operators].append(way)
    for operators, odd in kinds.items():
        for usual, others in kinds.items():
            if bool(operators) == bool(usual) or not _is_rare(len(odd), len(others), turns):
                continue
            for way in _instead(odd, others):
                if way.alone and not usual:
                    yield from _extra(way, region)
                elif usual and all(other.alone for other in others):
                    yield _lacking(way, others[0], region)


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


def _replaced(
    region: Region, readers: dict[str, list[Node]], producers: dict[str, Node], turns: int
) -> Iterator[Finding]:
    """Nodes that are something else than most with the same before and behind them."""
    places: dict[object, dict[str, list[Node]]] = defaultdict(lambda: defaultdict(list))
    for node in region.target.nodes:
        before = tuple(sorted(producers[name].op for name in node.inputs if name in producers))
        behind = tuple(sorted(reader.op for reader in readers.get(node.name, ())))
        if before and behind:
            places[before, behind, len(node.inputs)][node.op].append(node)
    for operators in places.values():
        usual = max(operators, key=lambda name: len(operators[name]))
        for name, odd in operators.items():
            if not of_one_family(name, usual) or not _is_rare(len(odd), len(operators[usual]), turns):
                continue
            for node in odd:
                words = f"`{node.layer}` is {node.native}, where other turns have {operators[usual][0].native}"
                yield Finding(Kind.GRAPH, words, region.source.layers, (node.layer,), weight=0.8)


def _ways(nodes: Sequence[Node], readers: dict[str, list[Node]]) -> Iterator[_Way]:
    for begin in nodes:
        waiting: list[tuple[Node, ...]] = [()]
        while waiting:
            between = waiting.pop()
            alone = all(len(list(filter(None, node.inputs))) == 1 for node in between)
            for reader in readers.get((between or (begin,))[-1].name, ()):
                yield _Way(begin, between, reader, alone)
                if len(between) < _LONGEST:
                    waiting.append((*between, reader))


def _readers(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    producers = _producers(nodes)
    found: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        for before in {producers[name].name: None for name in node.inputs if name in producers}:
            found[before].append(node)
    return found


def _producers(nodes: Sequence[Node]) -> dict[str, Node]:
    return {name: node for node in nodes for name in node.outputs}
