"""Faults that are one: the same difference in many layers is one wrong rule of a converter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from conrepair.graph.layer_graph import LayerGraph
from conrepair.localize.result import LocatedFault, Rule

__all__ = ["rules_of"]

_LEAST = 2  # places that make a rule


def rules_of(faults: Sequence[LocatedFault], graph: LayerGraph) -> tuple[Rule, ...]:
    """The rules behind faults, that with the most places first.

    Args:
        faults: With what explains them.
        graph: The target's, which says how many layers of a sort there are.
    """
    places: dict[str, dict[str, LocatedFault]] = {}
    for fault in faults:
        for words, layer in fault.differences:
            places.setdefault(words, {}).setdefault(layer, fault)
    sorts = {node.layer: node.native for node in graph.nodes}
    counts = Counter(sorts.values())
    found = []
    for words, layers in places.items():
        if len(layers) < _LEAST:
            continue
        natives = {sorts.get(name, "") for name in layers}
        among = counts[natives.pop()] if len(natives) == 1 else 0
        first = next((fault for fault in layers.values() if fault.differences[0][0] == words), None)
        kind = next(iter(layers.values())).kind if first is None else first.kind
        found.append(Rule(kind, words, tuple(layers), max(among, len(layers)) if among else 0))
    return tuple(sorted(found, key=lambda rule: -len(rule.layers)))
