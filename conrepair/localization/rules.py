"""Faults that are one: the same difference in many layers is one wrong rule of a converter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set

from conrepair.graph.layer_graph import LayerGraph
from conrepair.localization.numbers import judging
from conrepair.localization.result import LocatedFault, Rule

_HELD = ("weights", "bias")  # what layers have
_NUMBERS = re.compile(r"(?<![\w.])[-+]?\d[\d.e+-]*(?: to [-+]?\d[\d.e+-]*)?(?![\w])|\[[^]]*\]")
_SCALES = re.compile(r", [^,]*\bscales?\b[^,]*(, for groups[^,]*)?")  # a small layer's groups are its channels


def rules_of(faults: Sequence[LocatedFault], graph: LayerGraph) -> tuple[Rule, ...]:
    """The rules behind faults, that with the most places first.

    Args:
        faults: With what explains them.
        graph: The target's, which says how many layers of a sort there are.
    """
    places: dict[str, dict[str, LocatedFault]] = {}
    written: dict[str, set[str]] = {}
    for fault in faults:
        for words, layer in fault.differences:
            # How far one is off, and how many slices it has, needn't be the same for several layers.
            rule = _NUMBERS.sub("..", _SCALES.sub("", words))
            places.setdefault(rule, {}).setdefault(layer, fault)
            written.setdefault(rule, set()).add(words)
    sorts = {node.layer: node.native for node in graph.nodes}
    counts = Counter(sorts.values())
    found = []
    for rule, layers in places.items():
        if len(layers) < judging.RULE or len(set(layers.values())) == 1:  # one fault is one finding, wherever it is
            continue
        words = _together(written[rule], rule)
        natives = {sorts.get(name, "") for name in layers}
        among = counts[natives.pop()] if len(natives) == 1 and _is_of_layers(rule, natives) else 0
        first = next((fault for fault in layers.values() if fault.differences[0][0] in written[rule]), None)
        kind = next(iter(layers.values())).kind if first is None else first.kind
        found.append(Rule(kind, words, tuple(layers), max(among, len(layers)) if among else 0))
    return tuple(sorted(found, key=lambda rule: -len(rule.layers)))


def _is_of_layers(rule: str, natives: Set[str]) -> bool:
    """Whether a rule speaks of one sort of layers, of which others may be right, and not of pieces of several."""
    return any(word in rule for word in (*natives, *_HELD))


def _together(written: Set[str], rule: str) -> str:
    """What's written the same way in all places: with numbers, without them, or without how scales are shared."""
    for forms in (written, {_NUMBERS.sub("..", words) for words in written}):
        if len(forms) == 1:
            return min(forms)
    return rule
