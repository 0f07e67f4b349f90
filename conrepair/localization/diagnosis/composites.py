"""One operator of a side that the other writes as many: what can be at fault within the many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from conrepair.graph.kinds import Kind
from conrepair.localization.diagnosis.carried import carried_differences
from conrepair.localization.diagnosis.changes import change_findings
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.grouped import group_findings
from conrepair.localization.diagnosis.odd_ones import count_of, odd_parameters, turns_of
from conrepair.localization.diagnosis.odd_turns import odd_operators
from conrepair.localization.diagnosis.readings import fused
from conrepair.localization.diagnosis.region import Region, Side
from conrepair.localization.diagnosis.shuffled import shuffled_findings
from conrepair.localization.diagnosis.siblings import Healthy, closest_sibling
from conrepair.localization.diagnosis.steps import MOVES
from conrepair.localization.diagnosis.wiring import layers_of, wiring_findings

__all__ = ["composite_findings", "is_composite"]

_PIECES = 3  # operators that the target has for one


def is_composite(region: Region) -> bool:
    """Whether the target writes an operator of the source in pieces, so that the sides can't be compared by steps."""
    return _in_pieces(_operators(region.source), _operators(region.target))


def composite_findings(region: Region, healthy: Healthy, known: Sequence[Finding]) -> list[Finding]:
    """What differs within the pieces of a composite, from what they are elsewhere.

    Args:
        region: Guilty.
        healthy: What is right.
        known: What comparing the sides by steps says.

    Returns:
        The likeliest first; none when nothing says more than what's known.
    """
    composite = is_composite(region)
    if composite or all(node.op in MOVES for node in region.target.nodes):
        shuffled = list(shuffled_findings(region))
        if shuffled:
            return shuffled
    if not composite:
        whole = _in_pieces(_operators(region.target), _operators(region.source))
        return list(carried_differences(region)) if whole else []
    if grouped := list(group_findings(region)):
        return grouped
    turns = turns_of(region.target.nodes)
    odd = [*odd_parameters(region, turns), *(odd_operators(region, count_of(turns)) if turns else ())]
    if odd:
        return sorted(odd, key=lambda item: -item.weight)
    sibling = closest_sibling(region, healthy)
    certain = [item for item in sibling or () if item.is_certain]
    if certain and len(certain) < sum(item.is_certain for item in known):
        return certain
    carried = list(carried_differences(region))
    if carried or (sibling is not None and not certain):
        return carried or _numbers(region)
    return list(change_findings(region)) or _unexplained(region, known)


def _in_pieces(whole: Counter[str], pieces: Counter[str]) -> bool:
    return bool(whole - pieces) and (pieces - whole).total() >= _PIECES


def _numbers(region: Region) -> list[Finding]:
    """Where all operators are right, it's numbers."""
    weighted = [[node.layer for node in side.nodes if node.parameters] for side in (region.source, region.target)]
    if not weighted[1]:
        return []
    source, target = (tuple(dict.fromkeys(layers)) for layers in weighted)
    words = f"the operators from `{target[0]}` on are those of others that are right: parameters differ"
    return [
        Finding(Kind.PARAMETERS, words, source or layers_of(region.source), target, f"in {target[0]}", weight=0.5)
    ]


def _unexplained(region: Region, known: Sequence[Finding]) -> list[Finding]:
    """That one is many is no difference to list: what's said is which operator is computed wrongly."""
    ours, theirs = (_operators(side) for side in (region.source, region.target))
    composites = [node.layer for node in region.source.nodes if node.op in ours - theirs and node.parameters]
    certain = [item for item in known if item.is_certain]
    if not composites or not certain:
        return []
    pieces = layers_of(region.target)
    words = f"`{composites[0]}` is written as {len(pieces)} layers in the target, and isn't computed by them"
    target = tuple(dict.fromkeys([*certain[0].target_layers, *pieces]))
    said = replace(certain[0], words=words, source_layers=tuple(composites), target_layers=target, weight=0.5)
    return [said, *wiring_findings(region)]


def _operators(side: Side) -> Counter[str]:
    return Counter(step.op for step in fused(side) if step.op not in MOVES)
