"""One operator of a side that the other writes as many: what can be at fault within the many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from conrepair.diagnosis.localization.faces.changes import fixing_change, number_of
from conrepair.diagnosis.localization.faces.differences import extra_finding
from conrepair.diagnosis.localization.faces.numbers.carried import are_other_numbers, carried_differences
from conrepair.diagnosis.localization.faces.recurrent.turns import odd_ones
from conrepair.diagnosis.localization.faces.region import Finding, Region, Side
from conrepair.diagnosis.localization.faces.shuffled import shuffled_findings
from conrepair.diagnosis.localization.faces.steps.readings import fused
from conrepair.diagnosis.localization.faces.steps.steps import MOVES
from conrepair.diagnosis.localization.faces.wiring import wiring_findings
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node
from conrepair.ground.graph.operators import QUANTIZING

# Normalizations over other groups than the source's, in however many operators they're written.


def _group_findings(region: Region) -> Iterator[Finding]:
    """Told by how many means are taken of each sample, of as many numbers."""
    ours = [item for item in _taken(region.source) if item[0].op != "ReduceMean"]
    if len(ours) != 1:
        return
    [(norm, size, groups)] = ours
    theirs = [item for item in _taken(region.target) if item[1] == size]
    counts = {count for _, _, count in theirs}
    if len(counts) != 1 or groups in counts:
        return
    node, _, count = theirs[0]
    rule = f"normalizes {count} groups of each sample in the converted model, {groups} in the original"
    words = f"`{norm.layer}` {rule}"
    yield Finding(Kind.HYPERPARAMETERS, words, (norm.layer,), (node.layer, *region.target.layers), rule=rule)


def _taken(side: Side) -> Iterator[tuple[Node, int, int]]:
    """What takes means: each with how many numbers it reads of a sample, and how many means it takes of one."""
    for node in side.nodes:
        name = next(filter(None, node.inputs), "")
        shape = side.graph.tensors[name].shape if name in side.graph.tensors else None
        groups = None if not shape else _groups(node, shape)
        if shape and groups is not None:
            yield node, math.prod(shape[1:]), groups


def _groups(node: Node, shape: tuple[int, ...]) -> int | None:
    """Of a sample; None for what takes no means."""
    axes, groups = node.attributes.get("axes"), node.attributes.get("groups")
    if node.op == "InstanceNormalization":
        return shape[-1] if node.channels_last else shape[1]
    if node.op == "GroupNormalization" and isinstance(groups, int):
        return groups
    if node.op in {"ReduceMean", "LayerNormalization"} and isinstance(axes, tuple):
        gone = {int(axis) % len(shape) for axis in axes}
        return math.prod(size for axis, size in enumerate(shape) if axis and axis not in gone)
    return None


def composite_findings(region: Region, known: Sequence[Finding]) -> list[Finding]:
    """Differences within the operators that a composite is written as.

    Args:
        region: Guilty.
        known: What comparing the sides by steps says.

    Returns:
        The likeliest first; none when nothing says more than what's known.
    """
    composite = _in_pieces(_operators(region.source), _operators(region.target))
    if composite or all(node.op in MOVES for node in region.target.nodes):
        shuffled = list(shuffled_findings(region))
        if shuffled:
            return shuffled
    if not composite:
        whole = _in_pieces(_operators(region.target), _operators(region.source))
        return list(carried_differences(region)) if whole else []
    if grouped := list(_group_findings(region)):
        return grouped
    if odd := odd_ones(region):
        return odd
    found = list(carried_differences(region)) or list(_change_findings(region))
    return found or (_numbers(region) if are_other_numbers(region) else _unexplained(region, known))


def _change_findings(region: Region) -> Iterator[Finding]:
    """The piece at fault, if one change fixes all."""
    change = fixing_change(region)
    if change is None:
        return
    if change.other is None:
        yield replace(extra_finding(change.nodes, region), source_layers=region.source.layers)
        return
    node, other, whole = change.nodes[-1], change.other, region.source.nodes[-1].layer
    then = f"these layers would compute what `{whole}` of the original does"
    if change.is_missing:
        words = f"{other.native} is missing behind `{node.layer}`: with it, {then}"
    elif change.number:
        words = f"`{node.layer}` has {number_of(node):g}, `{whole}` has {change.number} {number_of(other):g}"
    elif name := change.attribute:
        given, right = (str(item.attributes[name]).replace(",)", ")") for item in (node, other))
        words = f"`{node.layer}` has {name} {given}: with {right}, {then}"
    else:
        right = f"were {other.op} instead of {node.op}" if node.op != other.op else "had its operands exchanged"
        words = f"{then} if `{node.layer}` {right}"
    kind = Kind.HYPERPARAMETERS if change.number or change.attribute else Kind.GRAPH
    yield Finding(kind, words, region.source.layers, (node.layer, *region.target.layers))


def _in_pieces(whole: Counter[str], pieces: Counter[str]) -> bool:
    return bool(whole - pieces) and (pieces - whole).total() >= naming.PIECES


def _numbers(region: Region) -> list[Finding]:
    """Where others stand in the place of the source's, it's numbers."""
    weighted = [[node.layer for node in side.nodes if node.parameters] for side in (region.source, region.target)]
    if not weighted[1]:
        return []
    source, target = map(tuple, weighted)
    words = f"constants of the operators from `{target[0]}` on differ from the original's, with the same shapes"
    return [Finding(Kind.PARAMETERS, words, source or region.source.layers, target, f"in {target[0]}", weight=0.5)]


def _unexplained(region: Region, known: Sequence[Finding]) -> list[Finding]:
    """That one is many is no difference to list: what's said is which operator is computed wrongly."""
    ours, theirs = (_operators(side) for side in (region.source, region.target))
    composites = [node.layer for node in region.source.nodes if node.op in ours - theirs and node.parameters]
    certain = [item for item in known if item.is_certain]
    if not composites or not certain:
        return []
    pieces = region.target.layers
    words = f"the converted model has {len(pieces)} layers for `{composites[0]}`, which compute something else"
    target = (*certain[0].target_layers, *pieces)
    said = replace(certain[0], words=words, source_layers=tuple(composites), target_layers=target, weight=0.5)
    return [said, *wiring_findings(region)]


def _operators(side: Side) -> Counter[str]:
    return Counter(step.op for step in fused(side) if step.op not in MOVES | QUANTIZING)
