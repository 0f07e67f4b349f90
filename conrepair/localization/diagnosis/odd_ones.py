"""In a loop that's unrolled, each turn has the same weights and operators: the turn that has others is at fault."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from conrepair.graph.layer_graph import Array, Node
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.parameters import ParameterDifference, difference
from conrepair.localization.diagnosis.region import Region

__all__ = ["Turns", "count_of", "odd_members", "odd_parameters", "turns_of"]

_FEWEST = 3  # turns that agree
_MAJORITY = 2 / 3

Key = tuple[str, tuple[tuple[str, tuple[int, ...]], ...]]
Turns = list[tuple[Node, ...]]
"""Nodes that are one of the source's operator each time: the same operator, with parameters of the same shapes."""


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


def count_of(turns: Turns) -> int:
    """How many turns there are: as many as have the same numbers."""
    shared = (arrays for group in turns for role in group[0].parameters for arrays in _shared(group, role))
    return max(map(len, shared), default=0)


def odd_parameters(region: Region, turns: Turns) -> Iterator[Finding]:
    """Parameters of a turn that others have with other numbers.

    Args:
        region: With the unrolled loop in the target.
        turns: Its groups.
    """
    source = [node.layer for node in region.source.nodes if node.parameters] or region.source.layers
    for node, role, usual in odd_members(turns):
        parameter, (found, _) = node.parameters[role], usual[0]
        named = f" ({parameter.name})" if parameter.name else ""
        words = f"the {role}{named} of `{node.layer}` is {found.words}, compared with what other turns have"
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
    return [arrays[0] for arrays in shared] if agreeing >= _MAJORITY * len(group) else []


def _shared(group: Sequence[Node], role: str) -> list[list[Array]]:
    """Numbers that several have: each as often as there are nodes that have them."""
    sets: list[list[Array]] = []
    for node in group:
        array = node.parameters[role].numpy()
        same = next((arrays for arrays in sets if np.array_equal(arrays[0], array)), None)
        if same is None:
            sets.append([array])
        else:
            same.append(array)
    return [arrays for arrays in sets if len(arrays) >= _FEWEST]
