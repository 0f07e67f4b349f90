"""One or more nodes that compute one thing, as diagnosis compares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conrepair.diagnosis.localization.faces.steps.functions import (
    Values,
    compute,
    evaluate,
    is_elementwise,
    known_function,
)
from conrepair.ground.graph.layer_graph import Array, Attribute, LayerGraph, Node, Parameter
from conrepair.ground.graph.operators import ORDERED, QUANTIZING

MOVES = frozenset({"Reshape", "Transpose", "Identity", "Expand"})
"""Operators that leave values what they are: conversions add and remove them freely."""

CASTS = {"Cast", *QUANTIZING}
"""Operators that make values others of another type, and those back."""


def moves_before(graph: LayerGraph, name: str) -> Iterator[Node]:
    """The operators that moved a tensor's values, the nearest first, back to the first that does something else.

    Args:
        graph: The tensor's.
        name: Of the tensor.
    """
    node = graph.producers.get(name)
    while node is not None and node.op in MOVES:
        yield node
        node = graph.producers.get(node.inputs[0])


def moves_behind(graph: LayerGraph, name: str) -> Iterator[Node]:
    """The operators that move a tensor's values on, the nearest first, up to the first that does something else.

    Args:
        graph: The tensor's.
        name: Of the tensor; there are none where several operators read it.
    """
    while len(readers := graph.consumers.get(name, ())) == 1 and readers[0].op in MOVES:
        yield readers[0]
        name = readers[0].outputs[0]


def moved_by(nodes: Sequence[Node], values: Array, graph: LayerGraph) -> Array | None:
    """What moves make of a tensor, each of which reads the one before; None where one repeats values, or isn't known.

    Args:
        nodes: In order; at least one.
        values: What the first one reads.
        graph: Theirs.
    """
    if any(node.op not in MOVES - {"Expand"} for node in nodes):
        return None
    found = compute(nodes, {nodes[0].inputs[0]: values}, graph)
    return None if found is None else found[nodes[-1].outputs[0]]


@dataclass(frozen=True)
class Step:
    """One or more nodes that compute one thing.

    Attributes:
        op: In the graph's vocabulary; ReLU is `Clip` here; "Function" for elementwise nodes that no operator says.
        attributes: As the vocabulary has them.
        parameters: By role.
        nodes: What it was made of, the one that it's called after first.
        inputs: Tensors.
        outputs: Tensors.
        channels_last: Where the channels are.
        values: On the grid, for an elementwise function.
    """

    op: str
    attributes: Mapping[str, Attribute]
    parameters: Mapping[str, Parameter]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    channels_last: bool = False
    values: Values | None = None

    @property
    def layers(self) -> tuple[str, ...]:
        """Names as they stand in the file; of what computes nothing last."""
        ordered = sorted(self.nodes, key=lambda node: node.op == "Identity")
        return tuple(dict.fromkeys(node.layer for node in ordered))

    @property
    def layer(self) -> str:
        """The first of them."""
        return self.layers[0]

    def has_exchanged(self, other: Step) -> bool:
        """Whether another one of this operator, which minds their order, has its operands exchanged."""
        first, second = self.attributes.get("constant_first"), other.attributes.get("constant_first")
        return self.op in ORDERED and first != second


Paired = Sequence[tuple[Step | None, Step | None]]
"""Steps of both sides in order; None for what only the other has."""


def step_of(node: Node) -> Step:
    """A node as a step of its own."""
    attributes: Mapping[str, Attribute] = dict(node.attributes)
    op = node.op
    if op == "Relu":
        op, attributes = "Clip", {"min": 0.0, "max": None}
    if op == "Transpose" and node.is_copy:  # TensorFlow's products come with such
        op, attributes = "Identity", {}
    values = None
    if is_elementwise(node) and len(dict.fromkeys(node.inputs)) == 1:
        values = evaluate([node], node.inputs[0], node.outputs[0])
    return Step(op, attributes, node.parameters, (node,), node.inputs, node.outputs, node.channels_last, values)


def function_step(nodes: Sequence[Node], begin: str, end: str) -> Step | None:
    """Elementwise nodes as one step.

    Args:
        nodes: In order.
        begin: The only tensor that they read from outside.
        end: The tensor that they compute.

    Returns:
        None when something can't be computed.
    """
    values = evaluate(nodes, begin, end)
    if values is None:
        return None
    known = known_function(values)
    op, attributes = known or ("Function", {})
    if len(nodes) == 1 and not known:
        return step_of(nodes[0])
    parameters = nodes[0].parameters if len(nodes) == 1 else {}
    return Step(op, attributes, parameters, tuple(reversed(nodes)), (begin,), (end,), values=values)
