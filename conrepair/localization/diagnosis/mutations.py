"""Changes of nodes, one at a time, and which of them makes elementwise operators compute what they should."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from conrepair.graph.layer_graph import Node
from conrepair.localization.diagnosis.functions import Values, evaluate, same_function
from conrepair.localization.diagnosis.steps import ORDERED

__all__ = ["Change", "Changed", "fixing_mutation", "with_other", "with_others", "without"]

_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Min", "Max")
_ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Softplus", "Neg")
_POWERS = ("Sqrt", "Rsqrt", "Square", "Reciprocal", "Abs", "Identity")
_REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin")


@dataclass(frozen=True)
class Change:
    """A change of some nodes.

    Attributes:
        nodes: As they're written: the one that's changed, or all that are taken out, in order.
        begin: What they read, which stands for what they compute where they're taken out.
        end: What they compute.
        other: What the one would be if it were right; None where they are too many.
        number: The attribute of another operator that its number should be; "" where it isn't about a number.
    """

    nodes: tuple[Node, ...]
    begin: str
    end: str
    other: Node | None = None
    number: str = ""


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
    pairs = ((early, node.outputs[0]) for node in nodes for early in _before(nodes, node.outputs[0]))
    short = sorted((without(nodes, *pair, end) for pair in pairs), key=lambda item: len(item[0].nodes))
    short = [item for item in short if item[1]]
    single = sum(len(change.nodes) == 1 for change, _, _ in short)
    tried = itertools.chain(short[:single], with_others(nodes, end), short[single:])
    return next((change for change, left, last in tried if _computes(left, begin, last, wanted)), None)


def without(nodes: Sequence[Node], early: str, late: str, end: str) -> Changed:
    """Nodes without those between two tensors, of which the first stands for the later one."""
    given = [replace(node, inputs=tuple(early if name == late else name for name in node.inputs)) for node in nodes]
    last = early if late == end else end
    needed = {last, *_before(given, last)}
    gone = tuple(node for node in nodes if node.outputs[0] not in needed)
    return Change(gone, early, late), tuple(node for node in given if node.outputs[0] in needed), last


def with_others(nodes: Sequence[Node], end: str) -> Iterator[Changed]:
    """Nodes with one of them exchanged: by the same with its operands exchanged, then by other operators."""
    for others in (_exchanged, _replaced):
        for place, node in enumerate(nodes):
            yield from (with_other(nodes, place, other, end) for other in others(node))


def with_other(nodes: Sequence[Node], place: int, other: Node, end: str, number: str = "") -> Changed:
    """Nodes with another one at a place."""
    change = Change((nodes[place],), other.inputs[0], other.outputs[0], other, number)
    return change, (*nodes[:place], other, *nodes[place + 1 :]), end


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
    for family in (_ARITHMETIC, _ACTIVATIONS, _POWERS, _REDUCTIONS):
        if node.op in family:
            yield from (replace(node, op=op) for op in family if op != node.op)
