"""Changes of nodes, one at a time, and which of them makes a piece compute what it should: proven by computing it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conrepair.diagnosis.localization.faces.region import Region, error_in, left_of
from conrepair.diagnosis.localization.faces.steps.functions import Values, compute, evaluate, same_function
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.layer_graph import Attribute, Node, Parameter
from conrepair.ground.graph.operators import ELEMENTWISE_BINARY, FUNCTIONS, OPERATORS, ORDERED, WITH_OPERAND

_MOST_NODES = 64
_MOST_PAIRS = 24  # of layers that are tried for one another
_MOST_VALUES = 1 << 20  # of the largest tensor
_MOST_WORK = 1 << 30  # numbers that are computed for all changes together
_MOST_GONE = 3  # nodes behind one another that may be too many
_MOST_AXES = 4  # whose orders are tried
_REDUCTIONS = [name for name, item in OPERATORS.items() if {"axes", "keepdims"} <= item.attributes.keys()]


@dataclass(frozen=True)
class Change:
    """A change of some nodes.

    Attributes:
        nodes: As they're written: the one that's changed, or that lacks one behind it, or all that are taken out, in
            order.
        other: What the one would be if it were right, or what it lacks; None where they are too many.
        number: The attribute of another operator that its number should be; "" where it isn't about a number.
        attribute: Of the one, that should be another; "" where it isn't about one.
    """

    nodes: tuple[Node, ...]
    other: Node | None = None
    number: str = ""
    attribute: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether the other one should stand behind the node."""
        return self.other is not None and self.other.inputs == self.nodes[0].outputs[:1]


Changed = tuple[Change, tuple[Node, ...], str]
"""A change, the nodes that are there with it, and the tensor of theirs that is what all compute."""


def fixing_mutation(nodes: Sequence[Node], begin: str, end: str, wanted: Values) -> Change | None:
    """Find the change that makes a chain compute a function.

    Taking one node out is tried first, then exchanging its operands, then other operators, then taking out several
    nodes between two tensors, the fewest first.

    Args:
        nodes: Elementwise, in order.
        begin: The only tensor that they read from outside.
        end: The tensor that they compute.
        wanted: Values of the function on the grid.
    """
    short = _shortened(nodes, end)
    single = sum(len(change.nodes) == 1 for change, _, _ in short)
    tried = itertools.chain(short[:single], with_others(nodes, end), short[single:])
    return next((change for change, left, last in tried if _computes(left, begin, last, wanted)), None)


def _shortened(nodes: Sequence[Node], end: str) -> list[Changed]:
    """Nodes without those between any two tensors, the fewest first."""
    pairs = ((early, node.outputs[0]) for node in nodes for early in _before(nodes, node.outputs[0]))
    short = sorted((without(nodes, *pair, end) for pair in pairs), key=lambda item: len(item[0].nodes))
    return [item for item in short if item[1]]


def without(nodes: Sequence[Node], early: str, late: str, end: str) -> Changed:
    """Nodes without those between two tensors, of which the first stands for the later one."""
    given = [replace(node, inputs=tuple(early if name == late else name for name in node.inputs)) for node in nodes]
    last = early if late == end else end
    needed = {last, *_before(given, last)}
    gone = tuple(node for node in nodes if node.outputs[0] not in needed)
    return Change(gone), tuple(node for node in given if node.outputs[0] in needed), last


def with_others(nodes: Sequence[Node], end: str) -> Iterator[Changed]:
    """Nodes with one of them exchanged: by the same with its operands exchanged, then by other operators."""
    for others in (_exchanged, _replaced):
        for place, node in enumerate(nodes):
            yield from (with_other(nodes, place, other, end) for other in others(node))


def with_other(nodes: Sequence[Node], place: int, other: Node, end: str, number: str = "") -> Changed:
    """Nodes with another one at a place."""
    return Change((nodes[place],), other, number), (*nodes[:place], other, *nodes[place + 1 :]), end


def _before(nodes: Sequence[Node], name: str) -> dict[str, None]:
    """Every tensor that one is computed from."""
    found: dict[str, None] = {}
    wanted = {name}
    for node in reversed(nodes):
        if node.outputs[0] in wanted:
            read = [item for item in node.inputs if item]
            wanted.update(read)
            found.update(dict.fromkeys(read))
    return found


def _computes(nodes: Sequence[Node], begin: str, end: str, wanted: Values) -> bool:
    values = evaluate(nodes, begin, end)
    return values is not None and same_function(wanted, values)


def _exchanged(node: Node) -> Iterator[Node]:
    if node.op not in ORDERED:
        return
    if "operand" in node.parameters:
        first = not node.attributes.get("constant_first")
        yield replace(node, attributes={**node.attributes, "constant_first": first})
    else:
        yield replace(node, inputs=node.inputs[::-1])


def _replaced(node: Node) -> Iterator[Node]:
    for family in (ELEMENTWISE_BINARY, FUNCTIONS, _REDUCTIONS):
        if node.op in family:
            yield from (replace(node, op=op) for op in family if op != node.op)


# In pieces of a layer, by their values.


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


def fixing_change(region: Region) -> Change | None:
    """Find it by trying: numbers that the source has, nodes taken out, exchanged, replaced; attributes; nodes put in.

    Args:
        region: Guilty, with a target in pieces.
    """
    if (values := _computed(region)) is None:
        return None
    begins = {name: values[name] for name in region.target.begins}
    most = _MOST_WORK // sum(array.size for array in values.values())
    for change, nodes, end in itertools.islice(_candidates(region), most):
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
    return values if error_in(region.layout, region.computed, end) <= naming.CLOSE else None


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
        given = number_of(node) if node.op in WITH_OPERAND and _is_number(node) else number
        if not np.isclose(given, number, rtol=1e-3, atol=0):
            yield with_other(nodes, place, _with_number(node, number), end, name)
    yield from (without(nodes, node.inputs[0], node.outputs[0], end) for node in nodes if node.inputs[0])
    yield from with_others(nodes, end)
    for place, node in enumerate(nodes):
        read = region.target.graph.tensors.get(node.inputs[0])
        for name, value in _other_attributes(node, len(read.shape or ()) if read else 0):
            other = replace(node, attributes={**node.attributes, name: value})
            yield Change((node,), other, attribute=name), (*nodes[:place], other, *nodes[place + 1 :]), end
    yield from (item for item in _shortened(nodes, end) if 1 < len(item[0].nodes) <= _MOST_GONE)
    for (place, node), operator in itertools.product(reversed([*enumerate(nodes)]), FUNCTIONS):
        other = Node("", "", operator, operator, node.outputs[:1], (f"{operator} behind",))
        yield _with_behind(nodes, place, other, end)


def _other_attributes(node: Node, axes: int) -> Iterator[tuple[str, Attribute]]:
    """Other axes than a node works along, as many as those, and other orders."""
    for name, value in node.attributes.items():
        if name == "axis" and isinstance(value, int):
            yield from ((name, axis) for axis in range(axes) if axis != value % axes)
        elif name == "axes" and isinstance(value, tuple):
            yield from ((name, other) for other in itertools.combinations(range(axes), len(value)) if other != value)
        elif name == "perm" and axes <= _MOST_AXES:
            yield from ((name, other) for other in itertools.permutations(range(axes)) if other != value)


def _with_behind(nodes: Sequence[Node], place: int, other: Node, end: str) -> Changed:
    """Nodes with another one behind the one at a place."""
    [(before, behind)] = zip(other.inputs, other.outputs, strict=True)
    later = [
        replace(node, inputs=tuple(behind if name == before else name for name in node.inputs))
        for node in nodes[place + 1 :]
    ]
    return Change((nodes[place],), other), (*nodes[: place + 1], other, *later), behind if end == before else end


def _is_number(node: Node) -> bool:
    operand = node.parameters.get("operand")
    return operand is not None and all(size == 1 for size in operand.shape)


def number_of(node: Node) -> float:
    """The one that's its constant operand."""
    return float(node.parameters["operand"].numpy().reshape(-1)[0])


def _with_number(node: Node, number: float) -> Node:
    operand = node.parameters["operand"]
    array = np.full(operand.shape, number)
    return replace(node, parameters={"operand": Parameter(operand.name, operand.shape, "float32", lambda: array)})
