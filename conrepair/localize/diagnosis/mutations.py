"""Which one change of a chain of elementwise operators makes it compute what it should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from conrepair.graph.layer_graph import Node
from conrepair.localize.diagnosis.functions import Values, evaluate, same_function

__all__ = ["Mutation", "mending_mutation"]

_ORDERED = {"Sub", "Div", "Pow"}
_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Min", "Max")
_ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Softplus", "Neg")


@dataclass(frozen=True)
class Mutation:
    """A change of one node.

    Attributes:
        node: As it's written.
        other: As it would be right; None where the node is one too many.
    """

    node: Node
    other: Node | None


def mending_mutation(nodes: Sequence[Node], begin: str, end: str, wanted: Values) -> Mutation | None:
    """Find the change of one node that makes a chain compute a function.

    Taking a node out is tried first, then exchanging its operands, then other operators.

    Args:
        nodes: Elementwise, in order.
        begin: The only tensor that they read from outside.
        end: The tensor that they compute.
        wanted: Values of the function on the grid.
    """
    for node in nodes:
        read = [name for name in node.inputs if name]
        if len(read) == 1 and len(nodes) > 1:
            rest = [_reading(item, node.outputs[0], read[0]) for item in nodes if item is not node]
            if _computes(rest, begin, read[0] if node.outputs[0] == end else end, wanted):
                return Mutation(node, None)
    for others in (_exchanged, _replaced):
        for place, node in enumerate(nodes):
            for other in others(node):
                if _computes([*nodes[:place], other, *nodes[place + 1 :]], begin, end, wanted):
                    return Mutation(node, other)
    return None


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
    for family in (_ARITHMETIC, _ACTIVATIONS):
        if node.op in family:
            yield from (replace(node, op=op) for op in family if op != node.op)
