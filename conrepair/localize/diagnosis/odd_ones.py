"""In a loop that's unrolled, each turn has the same weights and operators: the turn that has others is at fault."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from conrepair.graph.layer_graph import Array, Node
from conrepair.localize.diagnosis.finding import Finding
from conrepair.localize.diagnosis.parameters import difference
from conrepair.localize.diagnosis.region import Region
from conrepair.localize.diagnosis.wiring import layers_of

__all__ = ["Turns", "odd_parameters", "turns_of"]

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
        Groups most of whose members have the very same numbers: other layers of one size have numbers of their own.
    """
    groups: dict[Key, list[Node]] = defaultdict(list)
    for node in nodes:
        shapes = tuple(sorted((role, item.shape) for role, item in node.parameters.items()))
        if any(math.prod(shape) > 1 for _, shape in shapes):
            groups[node.op, shapes].append(node)
    return [
        tuple(group)
        for group in groups.values()
        if any(_usual(group, role) is not None for role in group[0].parameters)
    ]


def odd_parameters(region: Region, turns: Turns) -> Iterator[Finding]:
    """Parameters of a turn that others have with other numbers.

    Args:
        region: With the unrolled loop in the target.
        turns: Its groups.
    """
    source = [node.layer for node in region.source.nodes if node.parameters] or layers_of(region.source)
    for group in turns:
        for role in group[0].parameters:
            usual = _usual(group, role)
            if usual is None:
                continue
            for node in group:
                parameter = node.parameters[role]
                found = difference(usual, parameter.numpy())
                if found is None:
                    continue
                named = f" ({parameter.name})" if parameter.name else ""
                words = f"the {role}{named} of `{node.layer}` is {found.words}, compared with what other turns have"
                yield Finding(found.kind, words, tuple(source), (node.layer,), f"at {node.layer}")


def _usual(group: Sequence[Node], role: str) -> Array | None:
    """The numbers that a large majority has."""
    arrays = [node.parameters[role].numpy() for node in group]
    while len(arrays) >= max(_FEWEST, math.ceil(_MAJORITY * len(group))):
        same = [array for array in arrays if np.array_equal(array, arrays[0])]
        if len(same) >= max(_FEWEST, math.ceil(_MAJORITY * len(group))):
            return same[0]
        arrays = [array for array in arrays if not np.array_equal(array, arrays[0])]
    return None
