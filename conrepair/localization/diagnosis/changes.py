"""Which one change of a piece makes the pieces compute what the source's operator does: proven by computing it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node, Parameter
from conrepair.graph.operators import WITH_OPERAND
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.functions import Values, compute
from conrepair.localization.diagnosis.mutations import Change, Changed, with_other, with_others, without
from conrepair.localization.diagnosis.region import CLOSE, Region, error_in, left_of

__all__ = ["Exchange", "change_findings", "exchanged_pieces", "fixing_change"]

_MOST_NODES = 64
_MOST_PAIRS = 24  # of layers that are tried for one another
_MOST_VALUES = 1 << 20  # of the largest tensor


@dataclass(frozen=True)
class Exchange:
    """Two tensors of the target that are read in each other's place.

    Attributes:
        one: The first.
        two: The other one.
        readers: The nodes of the piece that read either.
    """

    one: str
    two: str
    readers: tuple[Node, ...]


def change_findings(region: Region) -> Iterator[Finding]:
    """The piece at fault, if one change fixes all."""
    change = fixing_change(region)
    if change is None:
        return
    node, other = change.nodes[-1], change.other
    whole = region.source.nodes[-1].layer
    kind = Kind.HYPERPARAMETERS if change.number else Kind.GRAPH
    if other is None:
        words = f"`{node.layer}` is one too many: without it, the pieces compute what `{whole}` does"
    elif change.number:
        given, wanted = (_number(item) for item in (node, other))
        words = f"`{node.layer}` has {given:g}, where `{whole}` has {change.number} {wanted:g}"
    else:
        right = f"were {other.op} instead of {node.op}" if node.op != other.op else "had its operands exchanged"
        words = f"the pieces would compute what `{whole}` does if `{node.layer}` {right}"
    yield Finding(kind, words, region.source.layers, (node.layer, *region.target.layers))


def fixing_change(region: Region) -> Change | None:
    """Find it by trying: numbers that the source has, then nodes taken out, exchanged, replaced.

    Args:
        region: Guilty, with a target in pieces.
    """
    if (values := _computed(region)) is None:
        return None
    begins = {name: values[name] for name in region.target.begins}
    for change, nodes, end in _candidates(region):
        after = compute(nodes, begins, region.target.graph)
        if _comes_right(region, values, None if after is None else after[end]):
            return change
    return None


def exchanged_pieces(region: Region) -> Exchange | None:
    """Find two layers with weights, neither of which reads the other, that give what the other one should.

    Args:
        region: Guilty, with a target in pieces.
    """
    nodes, graph, begins = region.target.nodes, region.target.graph, {*region.target.begins}
    layers = sorted((node for node in nodes if node.parameters), key=lambda node: node.op in WITH_OPERAND)
    alike = [pair for pair in itertools.combinations(layers, 2) if _sizes(pair[0]) == _sizes(pair[1]) > [1]]
    if not alike or not region.source.nodes or (values := _computed(region)) is None:
        return None
    for pair in alike[:_MOST_PAIRS]:
        one, two = (node.outputs[0] for node in pair)
        before = {item.name for node in pair for item in graph.between(begins, {*node.inputs} - begins)}
        if before & {node.name for node in pair} or values[one].shape != values[two].shape:
            continue
        known = {**{name: values[name] for name in begins}, one: values[two], two: values[one]}
        after = compute([node for node in nodes if node not in pair], known, graph)
        if _comes_right(region, values, None if after is None else after[region.target.end]):
            return Exchange(one, two, tuple(node for node in nodes if {one, two} & {*node.inputs}))
    return None


def _sizes(node: Node) -> list[int]:
    return [math.prod(parameter.shape) for parameter in node.parameters.values()]


def _computed(region: Region) -> dict[str, Values] | None:
    """All tensors of the pieces as they are; None where they can't be computed here."""
    nodes, graph = region.target.nodes, region.target.graph
    sizes = [np.prod(graph.tensors[name].shape or (np.inf,)) for node in nodes for name in node.outputs]
    if not nodes or len(nodes) > _MOST_NODES or max(sizes) > _MOST_VALUES:
        return None
    values = compute(nodes, {name: np.asarray(region.fed(name), np.float64) for name in region.target.begins}, graph)
    end = None if values is None else values[region.target.end]
    return values if error_in(region.layout, region.computed, end) <= CLOSE else None


def _comes_right(region: Region, values: Mapping[str, Values], after: Values | None) -> bool:
    error = error_in(region.layout, region.expected, values[region.target.end])
    return error_in(region.layout, region.expected, after) <= left_of(error)


def _candidates(region: Region) -> Iterator[Changed]:
    nodes, end = region.target.nodes, region.target.end
    numbers = {
        name: float(value)
        for node in region.source.nodes
        for name, value in node.attributes.items()
        if isinstance(value, float)
    }
    for (place, node), (name, number) in itertools.product(enumerate(nodes), numbers.items()):
        if node.op in WITH_OPERAND and _is_number(node) and not np.isclose(_number(node), number, rtol=1e-3, atol=0):
            yield with_other(nodes, place, _with_number(node, number), end, name)
    yield from (without(nodes, node.inputs[0], node.outputs[0], end) for node in nodes if node.inputs[0])
    yield from with_others(nodes, end)


def _is_number(node: Node) -> bool:
    operand = node.parameters.get("operand")
    return operand is not None and all(size == 1 for size in operand.shape)


def _number(node: Node) -> float:
    return float(node.parameters["operand"].numpy().reshape(-1)[0])


def _with_number(node: Node, number: float) -> Node:
    operand = node.parameters["operand"]
    array = np.full(operand.shape, number)
    return replace(node, parameters={"operand": Parameter(operand.name, operand.shape, "float32", lambda: array)})
