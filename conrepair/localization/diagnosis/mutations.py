"""Which one change of a chain of elementwise operators makes it compute what it should."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from conrepair.graph.layer_graph import Node
from conrepair.localization.diagnosis.computing import Values, evaluate
from conrepair.localization.diagnosis.functions import same_function

__all__ = ["Mutation", "changed_nodes", "fixing_mutation"]

_ORDERED = {"Sub", "Div", "Pow"}
_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Min", "Max")
_ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Softplus", "Neg")
_POWERS = ("Sqrt", "Rsqrt", "Square", "Reciprocal", "Abs", "Identity")
_REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")


@dataclass(frozen=True)
class Mutation:
    """A change of a chain.

    Attributes:
        nodes: As they're written: the one that's changed, or all that are taken out, in order.
        begin: What they read.
        end: What they compute.
        other: What the one would be if it were right; None where they are too many.
    """

    nodes: tuple[Node, ...]
    begin: str
    end: str
    other: Node | None = None


def fixing_mutation(nodes: Sequence[Node], begin: str, end: str, wanted: Values) -> Mutation | None:
    """Find the change that makes a chain compute a function.

    Taking one node out is tried first, then exchanging its operands, then other operators, then taking out several
    nodes between two tensors, the fewest first.

    Args:
        nodes: Elementwise, in order.
        begin: The only tensor that they read from outside.
        end: The tensor that they compute.
        wanted: Values of the function on the grid.
    """
    short = sorted(_shortened(nodes, begin, end), key=lambda item: len(item[0].nodes))
    single = sum(len(mutation.nodes) == 1 for mutation, _, _ in short)
    changed = (
        (
            Mutation((nodes[place],), other.inputs[0], other.outputs[0], other),
            (*nodes[:place], other, *nodes[place + 1 :]),
            end,
        )
        for place, other in changed_nodes(nodes)
    )
    tried = itertools.chain(short[:single], changed, short[single:])
    return next((mutation for mutation, left, last in tried if _computes(left, begin, last, wanted)), None)


def changed_nodes(nodes: Sequence[Node]) -> Iterator[tuple[int, Node]]:
    """Places, and what may have stood there: the same with its operands exchanged, then other operators."""
    for others in (_exchanged, _replaced):
        for place, node in enumerate(nodes):
            yield from ((place, other) for other in others(node))


def _shortened(nodes: Sequence[Node], begin: str, end: str) -> Iterator[tuple[Mutation, tuple[Node, ...], str]]:
    """Chains in which one tensor stands for a later one: what goes, the nodes that are left, what they compute."""
    for last in nodes:
        late = last.outputs[0]
        for early in _before(nodes, late):
            given = [_reading(node, late, early) for node in nodes]
            after = early if late == end else end
            needed = {after, *_before(given, after)}
            gone = tuple(node for node in nodes if node.outputs[0] not in needed)
            left = tuple(node for node in given if node.outputs[0] in needed)
            if left and (early == begin or early in needed):
                yield Mutation(gone, early, late), left, after


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


def _reading(node: Node, name: str, other: str) -> Node:
    return replace(node, inputs=tuple(other if item == name else item for item in node.inputs))


def _exchanged(node: Node) -> Iterator[Node]:
    if node.op not in _ORDERED:
        return
    if "operand" in node.parameters:
        first = not node.attributes.get("constant_first")
        yield replace(node, attributes={**node.attributes, "constant_first": first})
    else:
        yield replace(node, inputs=node.inputs[::-1])


def _replaced(node: Node) -> Iterator[Node]:
    for family in (_ARITHMETIC, _ACTIVATIONS, _POWERS, _REDUCTIONS):
        if node.op in family:
            yield from (replace(node, op=op) for op in family if op != node.op)
