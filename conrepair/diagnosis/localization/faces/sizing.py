"""Sizes that are computed otherwise: what's shaped by them isn't what's wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from conrepair.diagnosis.localization.align.layout import lies_along
from conrepair.diagnosis.localization.faces.region import Finding, Region, Side
from conrepair.diagnosis.localization.faces.steps.steps import MOVES, moves_before
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node
from conrepair.ground.graph.operators import WITH_OPERAND


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
            words = f"`{second}` gives `{two.layer}` another shape than `{first}` does in the original"
            if second == two.layer:
                words = f"`{two.layer}` has another shape than `{first}` computes in the original"
            yield Finding(Kind.STRUCTURE, words, (first, one.layer), (second, two.layer))
    yield from _broadcast_elsewhere(region)


def _broadcast_elsewhere(region: Region) -> Iterator[Finding]:
    """Operands that lost axes of 1, or have some more, so that they're repeated along others than in the source."""
    for name in region.target.begins:
        layout, partner = region.layouts.get(name), region.partners.get(name)
        if layout is None or partner is None or lies_along(layout.source) == lies_along(layout.target):
            continue
        ours, theirs = (
            next((node for node in side.nodes if read in node.inputs and node.op in WITH_OPERAND), None)
            for side, read in ((region.source, partner), (region.target, name))
        )
        if ours is None or theirs is None:
            continue
        one, two = region.source.graph.tensors[ours.outputs[0]], region.target.graph.tensors[theirs.outputs[0]]
        if one.shape and two.shape and lies_along(one.shape) == lies_along(two.shape):
            made = region.target.graph.layer_of(name)
            sizes = f"of shape {list(layout.target)}, {list(layout.source)} in the original"
            words = f"`{theirs.layer}` reads `{made}` {sizes}: it's broadcast along other axes"
            yield Finding(Kind.STRUCTURE, words, (ours.layer,), (theirs.layer, made))


def mask_findings(region: Region) -> Iterator[Finding]:
    """What differs in how masks and other numbers are computed that follow from the inputs' sizes alone."""
    found: dict[str, Finding] = {}
    for one, two in _counterparts(region):
        for place in one.sizes.keys() & two.sizes.keys():
            for first, second in _differences(_negated(one.sizes[place]), _negated(two.sizes[place])):
                if first.op == second.op:
                    words = f"constants of {second.op} `{second.layer}`, for `{two.layer}`, differ from those of"
                    sides = (first.layer, one.layer), (second.layer, two.layer)
                    kind = Kind.PARAMETERS if first.parameters else Kind.HYPERPARAMETERS
                    cause = f"at {second.layer}"
                    rule = f"constants of {second.native} for masks differ"
                    found[cause] = Finding(kind, f"{words} `{first.layer}` in the original", *sides, cause, rule=rule)
    yield from found.values()


def _negated(node: Node) -> Node:
    """What a mask is the opposite of; which of the two is chosen by, and which is added, is a matter of writing."""
    return node.sizes[0] if node.op == "Not" and 0 in node.sizes else node


def _counterparts(region: Region) -> Iterator[tuple[Node, Node]]:
    """Nodes of both sides that depend on sizes: those of one operator in turn, from the end on."""
    ours, theirs = (
        [node for node in reversed(side.nodes) if node.sizes and node.op not in MOVES]
        for side in (region.source, region.target)
    )
    for operator in dict.fromkeys(node.op for node in ours):
        yield from zip(*([node for node in side if node.op == operator] for side in (ours, theirs)), strict=False)


def _moves(side: Side) -> list[Node]:
    """The region's nodes that move values, behind those in front of it."""
    before = [node for begin in side.begins for node in moves_before(side.graph, begin)]
    return [*reversed(before), *(node for node in side.nodes if node.op in MOVES)]


def _differing(one: Node, two: Node) -> tuple[Node, Node] | None:
    """What shapes two nodes differently: nodes that compute sizes, or the second itself."""
    place = 1  # of the sizes among the inputs of a Reshape
    if place in one.sizes and place in two.sizes:
        return _first_difference(one.sizes[place], two.sizes[place])
    wanted, given = one.attributes.get("shape"), two.attributes.get("shape")
    if place not in one.sizes or not isinstance(wanted, tuple) or not isinstance(given, tuple):
        return None
    return (one.sizes[place], two) if wanted != given and Counter(wanted) == Counter(given) else None


def _first_difference(one: Node, two: Node) -> tuple[Node, Node] | None:
    """The first nodes, from the sizes that are asked for on, that differ."""
    found = list(_differences(one, two))
    return found[0] if len(found) == 1 else (one, two) if found else None


def _differences(one: Node, two: Node) -> Iterator[tuple[Node, Node]]:
    """All nodes that differ where those before them don't, as far back as both sides are alike."""
    ahead, seen = [(one, two)], {(id(one), id(two))}
    told: set[tuple[str, str]] = set()
    for first, second in ahead:  # grows
        if not _itself(first, second) or first.sizes.keys() != second.sizes.keys():
            if (first.layer, second.layer) not in told:
                yield first, second
            told.add((first.layer, second.layer))
            continue
        for place, before in first.sizes.items():
            other = second.sizes[place]
            if (id(before), id(other)) not in seen:
                seen.add((id(before), id(other)))
                ahead.append((before, other))


def _itself(one: Node, two: Node) -> bool:
    """Whether nodes do the same, whatever they read."""
    if one.op != two.op or dict(one.attributes) != dict(two.attributes):
        return False
    return one.parameters.keys() == two.parameters.keys() and all(
        np.array_equal(parameter.numpy(), two.parameters[role].numpy()) for role, parameter in one.parameters.items()
    )
