"""How the cuts of a network hang together: what each is computed from, and what is computed from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from conrepair.graph.layer_graph import LayerGraph
from conrepair.localization.matching import Pair

Feeding = Mapping[str, Sequence[str]]
"""The cuts that each tensor of the target is computed from."""


def known_of(graph: LayerGraph, pairs: Sequence[Pair]) -> Set[str]:
    """The target's tensors that are known: cuts, and what the network is fed.

    Args:
        graph: The target's.
        pairs: All cuts but its inputs.
    """
    return frozenset({*(pair.target for pair in pairs), *graph.inputs})


def feeding_of(graph: LayerGraph, pairs: Sequence[Pair]) -> Feeding:
    """The cuts that each tensor of the target is computed from.

    Args:
        graph: The target's.
        pairs: All cuts but its inputs, which are known too.
    """
    return graph.feeding(known_of(graph, pairs))


def readers_of(pairs: Sequence[Pair], feeding: Feeding) -> dict[str, list[str]]:
    """The other way round: the pairs that are computed from each cut, by the target's names."""
    readers: dict[str, list[str]] = {}
    for pair in pairs:
        for fed in feeding.get(pair.target, ()):
            readers.setdefault(fed, []).append(pair.target)
    return readers
