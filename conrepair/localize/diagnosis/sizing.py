"""Sizes that are computed otherwise: what's shaped by them isn't what's wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from conrepair.faults.fault import Kind
from conrepair.graph.layer_graph import Node
from conrepair.localize.diagnosis.finding import Finding
from conrepair.localize.diagnosis.region import Region, Side
from conrepair.localize.diagnosis.steps import MOVES

__all__ = ["size_findings"]


def size_findings(region: Region) -> Iterator[Finding]:
    """Shapes that aren't those of the source, and what computes them where that isn't a number in the file.

    A tensor in another shape has the same values, so what's shaped wrongly may lie before the region. Shapes are
    compared where both sides have the same moves, from the end of the region on.
    """
    ours, theirs = (
        [node for node in _moves(side) if node.op == "Reshape"] for side in (region.source, region.target)
    )
    for one, two in zip(reversed(ours), reversed(theirs), strict=False):
        differing = _differing(one, two)
        if differing is not None:
            first, second = (node.layer for node in differing)
            words = f"`{second}` gives `{two.layer}` other sizes than `{first}` does in the source"
            if second == two.layer:
                words = f"`{two.layer}` has other sizes than `{first}` computes in the source"
            yield Finding(Kind.STRUCTURE, words, (first, one.layer), (second, two.layer), f"at {second}")


def _moves(side: Side) -> list[Node]:
    """The region's nodes that move values, behind those in front of it."""
    found = [node for node in side.nodes if node.op in MOVES]
    for begin in side.begins:
        node = side.graph.producers.get(begin)
        while node is not None and node.op in MOVES:
            found.insert(0, node)
            node = side.graph.producers.get(node.inputs[0])
    return found


def _differing(one: Node, two: Node) -> tuple[Node, Node] | None:
    """What shapes two nodes differently: nodes that compute sizes, or the second itself."""
    place = _SHAPE
    if place in one.sizes and place in two.sizes:
        return _first_difference(one.sizes[place], two.sizes[place])
    wanted, given = one.attributes.get("shape"), two.attributes.get("shape")
    if place not in one.sizes or not isinstance(wanted, tuple) or not isinstance(given, tuple):
        return None
    return (one.sizes[place], two) if wanted != given and Counter(wanted) == Counter(given) else None


_SHAPE = 1  # the input of a Reshape that its sizes are


def _first_difference(one: Node, two: Node) -> tuple[Node, Node] | None:
    """The first nodes, from the sizes that are asked for on, that differ."""
    if _same(one, two):
        return None
    if _itself(one, two) and one.sizes.keys() == two.sizes.keys():
        differing = [(one.sizes[place], two.sizes[place]) for place in one.sizes]
        differing = [(ours, theirs) for ours, theirs in differing if not _same(ours, theirs)]
        if len(differing) == 1:
            return _first_difference(*differing[0])
    return one, two


def _same(one: Node, two: Node) -> bool:
    alike = _itself(one, two) and one.sizes.keys() == two.sizes.keys()
    return alike and all(_same(one.sizes[place], two.sizes[place]) for place in one.sizes)


def _itself(one: Node, two: Node) -> bool:
    """Whether nodes do the same, whatever they read."""
    if one.op != two.op or dict(one.attributes) != dict(two.attributes):
        return False
    return one.parameters.keys() == two.parameters.keys() and all(
        np.array_equal(parameter.numpy(), two.parameters[role].numpy()) for role, parameter in one.parameters.items()
    )
