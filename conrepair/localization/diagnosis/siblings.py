"""A composite that another operator of the same kind is written as elsewhere, and there it's right: what differs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Attribute, Node, Parameter
from conrepair.localization.diagnosis.attributes import attribute_differences
from conrepair.localization.diagnosis.differences import called, kind_of_extra
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.functions import same_function
from conrepair.localization.diagnosis.pairing import pair_steps
from conrepair.localization.diagnosis.readings import as_written, together
from conrepair.localization.diagnosis.region import Cuts, Region, Side
from conrepair.localization.diagnosis.steps import MOVES, Paired, Step
from conrepair.localization.layout import layouts
from conrepair.localization.matching import Pair

__all__ = ["Healthy", "closest_sibling"]

_MOST_AXES = 8
_AS_IT_IS = {rank: layouts((2,) * rank, (2,) * rank)[0] for rank in range(1, _MOST_AXES + 1)}
_CLOSE = 1e-5
_MOVED = 0.3  # moves of values are cut off at the ends of regions, which lie here for one and there for another


@dataclass(frozen=True)
class Healthy:
    """What is right, to compare with.

    Attributes:
        cuts: All of them, of the source and the target.
        ends: Cuts behind regions that were judged, and aren't guilty.
    """

    cuts: Cuts
    ends: Sequence[Pair]


def closest_sibling(region: Region, healthy: Healthy) -> list[Finding] | None:
    """Compare the target with how it writes the same operators of the source elsewhere, where that's right.

    The numbers of weights are others there, and aren't compared.

    Args:
        region: One composite of the source, and its pieces in the target.
        healthy: Where to look.

    Returns:
        What differs from the sibling that's most like it, the likeliest first; None without siblings.
    """
    found = [_differences(right, region) for right in _siblings(region, healthy)]
    return min(found, key=_amount, default=None)


def _amount(findings: Sequence[Finding]) -> tuple[int, int]:
    return sum(item.is_certain for item in findings), len(findings)


def _siblings(region: Region, healthy: Healthy) -> Iterator[Side]:
    """The target's sides of healthy regions whose source has the same operators."""
    wanted = _operators(region.source)
    last = {node.op for node in region.source.nodes} | MOVES
    for pair in healthy.ends:
        producer = healthy.cuts.graphs[0].producers.get(pair.source)
        if producer is None or producer.op not in last:
            continue
        ours, theirs = healthy.cuts.sides(pair)
        if theirs.nodes and theirs.end != region.target.end and _operators(ours) == wanted:
            yield theirs


def _operators(side: Side) -> list[tuple[str, Mapping[str, Attribute], set[str]]]:
    return [(node.op, node.attributes, {*node.parameters}) for node in side.nodes if node.op not in MOVES]


def _differences(right: Side, region: Region) -> list[Finding]:
    pairs = pair_steps(as_written(_by_reading(right)), as_written(_by_reading(region.target)))
    found = [*_extras(pairs, right, region), *_missing(pairs, region)]
    for one, two in pairs:
        if one is not None and two is not None:
            found += _both(one, two, region)
    return sorted(found, key=lambda item: -item.weight)


def _by_reading(side: Side) -> Side:
    """The nodes in the order in which they are reached from the end: files have them in any that computes."""
    producers = {name: node for node in side.nodes for name in node.outputs}
    found: dict[str, Node] = {}
    waiting = [(producers[side.end], False)] if side.end in producers else []
    while waiting:
        node, complete = waiting.pop()
        if complete:
            found[node.name] = node
        elif node.name not in found:
            waiting.append((node, True))
            waiting += [(producers[name], False) for name in reversed(node.inputs) if name in producers]
    return Side(side.graph, tuple(found.values()), side.begins, side.end)


def _extras(pairs: Paired, right: Side, region: Region) -> Iterator[Finding]:
    """What the sibling doesn't have; what follows on one another is told as one."""
    source = region.source.layers
    for alone, group in itertools.groupby(pairs, key=lambda pair: pair[0] is None):
        steps = [step for _, step in group if step is not None] if alone else []
        for chain in _chains(steps):
            for step in together([step.nodes[0] for step in chain], region.target.graph):
                kind, words = kind_of_extra(step, region)
                what = f"{called(step)} `{step.layer}` isn't in `{_name(right)}`, which is right{words}"
                yield Finding(kind, what, source, step.layers, f"extra {step.layer}", weight=_weight(step))


def _chains(steps: Sequence[Step]) -> Iterator[list[Step]]:
    chain: list[Step] = []
    for step in steps:
        if chain and not (len(step.inputs) == 1 and step.inputs[0] in chain[-1].outputs):
            yield chain
            chain = []
        chain.append(step)
    if chain:
        yield chain


def _missing(pairs: Paired, region: Region) -> Iterator[Finding]:
    """What only the sibling has: it's missing behind the step that stands for what it reads."""
    partners = {name: two for one, two in pairs if one is not None and two is not None for name in one.outputs}
    source = region.source.layers
    for one, two in pairs:
        if one is None or two is not None:
            continue
        before = [partners[name] for name in one.inputs if name in partners]
        behind = [step for other, step in pairs if other and step and set(one.outputs) & set(other.inputs)]
        around = tuple(layer for step in [*before, *behind] for layer in step.layers)
        where = f" behind `{before[0].layer}`" if before else ""
        what = f"nothing stands{where} for {called(one)} `{one.layer}`, which is right"
        yield Finding(
            Kind.GRAPH, what, source, around or region.target.layers, f"missing {one.layer}", weight=_weight(one)
        )


def _both(right: Step, step: Step, region: Region) -> Iterator[Finding]:
    where = (region.source.layers, step.layers)
    one, two = f"`{right.layer}`, which is right,", f"`{step.layer}`"
    if right.op != step.op:
        if right.values is None or step.values is None or not same_function(right.values, step.values):
            yield Finding(Kind.GRAPH, f"{two} is {called(step)}, where {one} is {called(right)}", *where)
        return
    for differing in attribute_differences(right, step, _AS_IT_IS, (one.rstrip(","), "it")):
        yield Finding(differing.kind, f"{two} has {differing.words}", *where, weight=_weight(step))
    if right.has_exchanged(step):
        yield Finding(Kind.GRAPH, f"the operands of {two} are in another order than those of {one}", *where)
    for role in dict.fromkeys([*right.parameters, *step.parameters]):
        ours, theirs = right.parameters.get(role), step.parameters.get(role)
        if ours is None or theirs is None:
            words = f"{two} has {'a' if ours is None else 'no'} {role}, other than {one}"
            yield Finding(Kind.PARAMETERS, words.rstrip(","), *where, weight=0.5)
        elif (given := _number(theirs)) is not None and (usual := _number(ours)) is not None:
            yield from _constants(
                usual, given, f"the {role} of {two} is {given:g}, that of {one} {usual:g}", where, region
            )


def _constants(
    usual: float, given: float, words: str, where: tuple[tuple[str, ...], tuple[str, ...]], region: Region
) -> Iterator[Finding]:
    """A lone number is a part of how an operator is written, not a weight."""
    if np.isclose(usual, given, rtol=_CLOSE, atol=0.0):
        return
    attributes = (value for node in region.source.nodes for value in node.attributes.values())
    written = any(isinstance(value, float) and np.isclose(usual, value, rtol=_CLOSE) for value in attributes)
    yield Finding(Kind.HYPERPARAMETERS if written else Kind.PARAMETERS, words, *where)


def _number(parameter: Parameter) -> float | None:
    return float(parameter.numpy().reshape(())) if np.prod(parameter.shape, dtype=np.int64) == 1 else None


def _weight(step: Step) -> float:
    return (_MOVED if step.op == "Transpose" else 0.05) if step.op in MOVES else 0.9


def _name(side: Side) -> str:
    return side.graph.producers[side.end].layer
