"""Normalizations over other groups than the source's, in however many operators they're written."""

from __future__ import annotations

import math
from collections.abc import Iterator

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.region import Region, Side

__all__ = ["group_findings"]


def group_findings(region: Region) -> Iterator[Finding]:
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
    layers = dict.fromkeys([node.layer, *(other.layer for other in region.target.nodes)])
    rule = f"normalizes {count} groups of each sample in the target, {groups} in the source"
    words = f"`{norm.layer}` {rule}"
    yield Finding(Kind.HYPERPARAMETERS, words, (norm.layer,), tuple(layers), f"at {node.layer}", rule=rule)


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
