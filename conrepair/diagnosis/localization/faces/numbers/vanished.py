"""Numbers that became 0 or infinite, as half precision has none so small or large: an epsilon, a mask's bound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.diagnosis.localization.faces.region import Finding, Region, Side
from conrepair.diagnosis.localization.faces.steps.readings import paired_nodes
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node

_BACK = 3  # nodes in front of a region: what's added there shows where it's divided by, or a logarithm is taken


def vanished_findings(region: Region) -> Iterator[Finding]:
    """Numbers that became zero in half precision, in a region or in front of it, where too little changes."""
    pairs = [*paired_nodes(region.source, region.target), *_before(region)]
    told = set[str]()
    for ours, theirs in pairs:
        for name, number in _vanished(ours, theirs):
            became, size = ("infinite", "large") if abs(number) > 1 else ("0", "small")
            words = f"{name} of `{theirs.layer}` is {became} in the converted model, {number:.6g} in the original"
            if words not in told:
                told.add(words)
                sides = (ours.layer,), (theirs.layer,)
                rule = f"{name.split(' (')[0]} of {theirs.native} became {became}"
                yield Finding(Kind.PRECISION, f"{words}: float16 has no number so {size}", *sides, words, rule=rule)


def has_vanished(source: Side, target: Side) -> bool:
    """Whether a number of the target's side is 0 or infinite, as half precision doesn't have the source's."""
    return any(found for ours, theirs in paired_nodes(source, target) for found in _vanished(ours, theirs))


def _before(region: Region) -> Iterator[tuple[Node, Node]]:
    """The nodes in front of both sides, as long as they're alike."""
    graphs = region.source.graph, region.target.graph
    for begin in region.target.begins:
        names = region.partners.get(begin, ""), begin
        for _ in range(_BACK):
            ours, theirs = (_computing(graph, name) for graph, name in zip(graphs, names, strict=True))
            if ours is None or theirs is None or ours.op != theirs.op:
                break
            yield ours, theirs
            names = ours.inputs[0], theirs.inputs[0]


def _computing(graph: LayerGraph, name: str) -> Node | None:
    """What computes a tensor, with one operand that isn't constant; casts and copies are passed by."""
    node = graph.made_by(name, lambda item: item.is_copy or item.op == "Cast")
    return node if node is not None and len(node.inputs) == 1 and node.inputs[0] else None


def _vanished(ours: Node, theirs: Node) -> Iterator[tuple[str, float]]:
    """Names of numbers that are 0 or infinite now, with what they should be."""
    if ours.op != theirs.op:
        return
    for role in ours.parameters.keys() & theirs.parameters.keys():
        one, two = ours.parameters[role], theirs.parameters[role]
        if one.shape in {(), (1,)} and two.shape in {(), (1,)} and "float" in one.dtype:
            name = f"the {role} ({two.name})" if two.name else f"the {role}"
            yield from _gone(name, one.numpy().reshape(-1)[0], two.numpy().reshape(-1)[0])
    for name in ours.attributes.keys() & theirs.attributes.keys():
        wanted, given = ours.attributes[name], theirs.attributes[name]
        if isinstance(wanted, float) and isinstance(given, float):
            yield from _gone(name, wanted, given)


def _gone(name: str, wanted: float, given: float) -> Iterator[tuple[str, float]]:
    with np.errstate(over="ignore"):
        held = np.float16(wanted)
    if wanted and np.isfinite(wanted) and held == given and (not held or np.isinf(held)):
        yield name, float(wanted)
