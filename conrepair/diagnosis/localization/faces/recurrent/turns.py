"""In a loop that's unrolled, each turn has the same weights and operators: the turn that has others is at fault."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conrepair.diagnosis.localization.faces.differences import called, kind_of_extra
from conrepair.diagnosis.localization.faces.numbers.parameters import ParameterDifference, difference
from conrepair.diagnosis.localization.faces.region import Finding, Region
from conrepair.diagnosis.localization.faces.steps.readings import of_one_family, together
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, Node

_LONGEST = 3  # operators that stand in the way

Key = tuple[str, tuple[tuple[str, tuple[int, ...]], ...]]
Place = tuple[object, object]
Turns = list[tuple[Node, ...]]
"""Nodes that are one of the source's operator each time: the same operator, with parameters of the same shapes."""


def odd_ones(region: Region) -> list[Finding]:
    """What one turn of a loop has otherwise than the others: numbers, and operators; the likeliest first.

    Args:
        region: With a composite in the target, which may be an unrolled loop.
    """
    turns = turns_of(region.target.nodes)
    odd = [*_odd_parameters(region, turns), *(odd_operators(region, _count_of(turns)) if turns else ())]
    return sorted(odd, key=lambda item: -item.weight)


def turns_of(nodes: Sequence[Node]) -> Turns:
    """Nodes that have weights and are repeated; none where no loop is unrolled.

    Args:
        nodes: Of a composite.

    Returns:
        Groups most of whose members share their numbers with others: other layers of one size have their own.
    """
    groups: dict[Key, list[Node]] = defaultdict(list)
    for node in nodes:
        shapes = tuple(sorted((role, item.shape) for role, item in node.parameters.items()))
        if any(math.prod(shape) > 1 for _, shape in shapes):
            groups[node.op, shapes].append(node)
    return [tuple(group) for group in groups.values() if any(_usual(group, role) for role in group[0].parameters)]


def _count_of(turns: Turns) -> int:
    """How many turns there are: as many as have the same numbers."""
    shared = (arrays for group in turns for role in group[0].parameters for arrays in _shared(group, role))
    return max(map(len, shared), default=0)


def _odd_parameters(region: Region, turns: Turns) -> Iterator[Finding]:
    """Parameters of a turn that others have with other numbers."""
    source = [node.layer for node in region.source.nodes if node.parameters] or region.source.layers
    for node, role, usual in odd_members(turns):
        parameter, (found, _) = node.parameters[role], usual[0]
        named = f" ({parameter.name})" if parameter.name else ""
        words = f"the {role}{named} of `{node.layer}` is {found.words}, compared with other iterations of the loop"
        yield Finding(found.kind, words, tuple(source), (node.layer,))


def odd_members(turns: Turns) -> Iterator[tuple[Node, str, list[tuple[ParameterDifference, Array]]]]:
    """Nodes with a role's numbers that none of the others has, and what these have, the most similar first."""
    for group in turns:
        for role in group[0].parameters:
            usual = _usual(group, role)
            for node in group:
                array = node.parameters[role].numpy()
                found = [(other, one) for one in usual if (other := difference(one, array)) is not None]
                if found and len(found) == len(usual):
                    yield node, role, sorted(found, key=lambda item: item[0].relative)


def _usual(group: Sequence[Node], role: str) -> list[Array]:
    """The numbers that turns have in common: one set for each product of a turn; none when few turns agree."""
    shared = _shared(group, role)
    agreeing = sum(len(arrays) for arrays in shared)
    return [arrays[0] for arrays in shared] if agreeing >= naming.MAJORITY * len(group) else []


def _shared(group: Sequence[Node], role: str) -> list[list[Array]]:
    """Numbers that several have: each as often as there are nodes that have them."""
    sets: dict[bytes, list[Array]] = defaultdict(list)
    for array in (node.parameters[role].numpy() for node in group):
        sets[array.tobytes()].append(array)
    return [arrays for arrays in sets.values() if len(arrays) >= naming.TURNS]


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
        places[(way.begin.op, before), (way.end.op, behind)][tuple(node.op for node in way.between)].append(way)
    for kinds in places.values():
        for (_, odd), (_, usual) in itertools.permutations(kinds.items(), 2):
            common, all_alone = usual[0], all(way.alone for way in usual)
            for way in _instead(odd, usual) if _is_rare(len(odd), len(usual), turns) else ():
                if way.between and not common.between and way.alone:
                    yield from _extra(way, region)
                elif not way.between and all_alone:
                    yield _lacking(way, common, region)
    yield from _replaced(region, producers, readers, turns)


def _replaced(
    region: Region, producers: Mapping[str, Node], readers: Mapping[str, Mapping[str, Node]], turns: int
) -> Iterator[Finding]:
    """Operators that are others where all other turns have the same between the same neighbours."""
    alike: dict[object, dict[str, list[Node]]] = defaultdict(lambda: defaultdict(list))
    for node in region.target.nodes:
        before = tuple(sorted(producers[name].op for name in node.inputs if name in producers))
        behind = tuple(sorted(reader.op for reader in readers.get(node.name, {}).values()))
        if before and behind:
            alike[before, behind, len(node.inputs)][node.op].append(node)
    for kinds in alike.values():
        for (name, odd), (common, usual) in itertools.permutations(kinds.items(), 2):
            if of_one_family(name, common) and _is_rare(len(odd), len(usual), turns):
                for node in odd:
                    words = f"`{node.layer}` is {node.native}, {usual[0].native} in other iterations of the loop"
                    yield Finding(Kind.GRAPH, words, region.source.layers, (node.layer,), weight=0.8)


def _is_rare(odd: int, usual: int, turns: int) -> bool:
    """Whether so few iterations of the loop have an operator that it's no part of the usual iteration."""
    return usual >= max(naming.TURNS, naming.RARE * odd) and turns >= naming.RARE * odd


def _instead(odd: Sequence[_Way], usual: Sequence[_Way]) -> Iterator[_Way]:
    """Ways whose begin and end lack a usual one: from one turn to the next there are ways besides."""
    begins, ends = Counter(way.begin.name for way in usual), Counter(way.end.name for way in usual)
    for way in odd:
        if begins[way.begin.name] < max(begins.values()) and ends[way.end.name] < max(ends.values()):
            yield way


def _extra(way: _Way, region: Region) -> Iterator[Finding]:
    for step in together(way.between, region.target.graph):
        kind, words = kind_of_extra(step, region)
        what = f"{called(step)} `{step.layer}` is in one iteration of the loop only{words}"
        layers = (*step.layers, way.begin.layer)
        yield Finding(kind, what, region.source.layers, layers, f"extra {step.layer}", weight=0.9)


def _lacking(way: _Way, usual: _Way, region: Region) -> Finding:
    words = f"{usual.between[0].native} is missing between `{way.begin.layer}` and `{way.end.layer}`"
    layers = (way.begin.layer, way.end.layer)
    return Finding(
        Kind.GRAPH,
        f"{words}: other iterations have it",
        region.source.layers,
        layers,
        f"missing {layers}",
        weight=0.9,
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
