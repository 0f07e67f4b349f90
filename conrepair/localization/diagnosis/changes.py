"""Which one change of a piece makes the pieces compute what the source's operator does: proven by computing it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node, Parameter
from conrepair.localization.diagnosis.computing import Values, compute
from conrepair.localization.diagnosis.exchanged_cuts import Exchange
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.functions import BINARY
from conrepair.localization.diagnosis.mutations import changed_nodes
from conrepair.localization.diagnosis.region import CLOSE, Region, error_in, left_of
from conrepair.localization.diagnosis.wiring import layers_of

__all__ = ["Change", "change_findings", "exchanged_pieces", "fixing_change"]

_MOST_NODES = 64
_MOST_PAIRS = 24  # of layers that are tried for one another
_MOST_VALUES = 1 << 20  # of the largest tensor


@dataclass(frozen=True)
class Change:
    """A piece that's wrong.

    Attributes:
        node: As it's written.
        other: As it would be right; None where it's one too many, and its first input stands for it.
        number: The attribute of the source that its number should be; "" where it isn't about a number.
    """

    node: Node
    other: Node | None
    number: str = ""


def change_findings(region: Region) -> Iterator[Finding]:
    """The piece at fault, if one change fixes all."""
    change = fixing_change(region)
    if change is None:
        return
    node, other = change.node, change.other
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
    layers = tuple(dict.fromkeys([node.layer, *layers_of(region.target)]))
    yield Finding(kind, words, layers_of(region.source), layers, f"at {node.layer}")


def fixing_change(region: Region) -> Change | None:
    """Find it by trying: numbers that the source has, then nodes taken out, exchanged, replaced.

    Args:
        region: Guilty, with a target in pieces.
    """
    nodes, graph = region.target.nodes, region.target.graph
    if (values := _computed(region)) is None:
        return None
    for place, change in _candidates(region):
        begins = region.target.begins
        known = {name: values[name] for name in (*begins, *(item.outputs[0] for item in nodes[:place]))}
        changed = _without(change.node, known) if change.other is None else compute([change.other], known, graph)
        if _comes_right(region, values, None if changed is None else compute(nodes[place + 1 :], changed, graph)):
            return change
    return None


def exchanged_pieces(region: Region) -> Exchange | None:
    """Find two layers with weights, neither of which reads the other, that give what the other one should.

    Args:
        region: Guilty, with a target in pieces.
    """
    nodes, graph, begins = region.target.nodes, region.target.graph, {*region.target.begins}
    layers = sorted((node for node in nodes if node.parameters), key=lambda node: node.op in BINARY)
    alike = [pair for pair in itertools.combinations(layers, 2) if _sizes(pair[0]) == _sizes(pair[1]) > [1]]
    if not alike or not region.source.nodes or (values := _computed(region)) is None:
        return None
    for pair in alike[:_MOST_PAIRS]:
        one, two = (node.outputs[0] for node in pair)
        before = {item.name for node in pair for item in graph.between(begins, {*node.inputs} - begins)}
        if before & {node.name for node in pair} or values[one].shape != values[two].shape:
            continue
        known = {**{name: values[name] for name in begins}, one: values[two], two: values[one]}
        if _comes_right(region, values, compute([node for node in nodes if node not in pair], known, graph)):
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
    return None if values is None or _error(region, values, region.computed) > CLOSE else values


def _comes_right(region: Region, values: Mapping[str, Values], after: Mapping[str, Values] | None) -> bool:
    return _error(region, after, region.expected) <= left_of(_error(region, values, region.expected))


def _error(region: Region, values: Mapping[str, Values] | None, wanted: Values) -> float:
    return error_in(region.layout, wanted, None if values is None else values[region.target.end])


def _candidates(region: Region) -> Iterator[tuple[int, Change]]:
    nodes = region.target.nodes
    numbers = {
        name: float(value)
        for node in region.source.nodes
        for name, value in node.attributes.items()
        if isinstance(value, float)
    }
    for (place, node), (name, number) in itertools.product(enumerate(nodes), numbers.items()):
        if node.op in BINARY and _is_number(node) and not np.isclose(_number(node), number, rtol=1e-3, atol=0):
            yield place, Change(node, _with_number(node, number), name)
    yield from ((place, Change(node, None)) for place, node in enumerate(nodes))
    for place, other in changed_nodes(nodes):
        yield place, Change(nodes[place], other)


def _without(node: Node, known: Mapping[str, Values]) -> dict[str, Values] | None:
    read = next(filter(None, node.inputs), None)
    return None if read is None else {**known, node.outputs[0]: known[read]}


def _is_number(node: Node) -> bool:
    operand = node.parameters.get("operand")
    return operand is not None and all(size == 1 for size in operand.shape)


def _number(node: Node) -> float:
    return float(node.parameters["operand"].numpy().reshape(-1)[0])


def _with_number(node: Node, number: float) -> Node:
    operand = node.parameters["operand"]
    array = np.full(operand.shape, number)
    return replace(node, parameters={"operand": Parameter(operand.name, operand.shape, "float32", lambda: array)})
