"""Faults in terms of the neutral graph: where they can be put, and by which changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.faults.fault import Native
from benchmarks.faults.steps import Step, insert
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.layer_graph import Array, Attribute, LayerGraph, Node

__all__ = [
    "ACTIVATIONS",
    "WEIGHTS",
    "attributes_changed",
    "float_inputs",
    "float_outputs",
    "image_inputs",
    "inserted_at",
    "inserted_behind",
    "nodes_of",
    "numbers",
    "on_nodes",
    "operator_changed",
    "parameter_changed",
    "shape_of",
]

Compute = Callable[[Array, np.random.Generator], Array]
Steps = Callable[[np.random.Generator], Sequence[Step]]

WEIGHTS = {"Conv": "weight", "ConvTranspose": "weight", "MatMul": "weight", "LSTM": "W", "GRU": "W", "RNN": "W"}
"""The role of an operator's weights."""

ACTIVATIONS = (
    *("Clip", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish"),
    *("PRelu", "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Swish", "Tanh"),
)

_CHANNELS = 3


def nodes_of(
    *operators: str, condition: Callable[[LayerGraph, Node], bool] = lambda *_: True
) -> Callable[[LayerGraph], Sequence[Node]]:
    """The nodes of some operators that meet a condition."""

    def find(graph: LayerGraph) -> Sequence[Node]:
        return [node for node in graph.nodes if node.op in operators and condition(graph, node)]

    return find


def on_nodes(
    places: Callable[[LayerGraph], Sequence[Node]], change: Callable[[Editor, Node, np.random.Generator], str]
) -> Native:
    """A fault whose places are nodes."""

    def apply(editor: Editor, place: Node | str, generator: np.random.Generator) -> str:
        if isinstance(place, str):
            raise TypeError(f"{place} is no node")
        return change(editor, place, generator)

    return Native(places, apply)


def parameter_changed(
    roles: Mapping[str, str],
    compute: Compute,
    words: str,
    condition: Callable[[Array], bool] = lambda _: True,
    *,
    real: bool = False,
) -> Native:
    """A change of one parameter.

    Args:
        roles: Of the parameter, by operator.
        compute: Its new numbers.
        words: For a person; "{name}" stands for the layer's.
        condition: On the numbers.
        real: Whether they must be stored as real numbers.
    """

    def has(_: LayerGraph, node: Node) -> bool:
        parameter = node.parameters.get(roles[node.op])
        if parameter is None or (real and parameter.bits):
            return False
        return condition(numbers(node, roles[node.op]))

    def change(editor: Editor, node: Node, generator: np.random.Generator) -> str:
        role = roles[node.op]
        editor.set_parameter(node, role, np.ascontiguousarray(compute(numbers(node, role), generator)))
        return words.format(name=node.layer)

    return on_nodes(nodes_of(*roles, condition=has), change)


def attributes_changed(
    operators: Sequence[str],
    compute: Callable[[Node, np.random.Generator], Mapping[str, Attribute]],
    condition: Callable[[LayerGraph, Node], bool] = lambda *_: True,
) -> Native:
    """A change of attributes.

    Args:
        operators: Which nodes.
        compute: The new values.
        condition: On the nodes.
    """

    def change(editor: Editor, node: Node, generator: np.random.Generator) -> str:
        changes = compute(node, generator)
        editor.set_attributes(node, changes)
        known = {**node.written, **node.attributes}
        listing = "; ".join(f"{key} is {value} instead of {known.get(key)}" for key, value in changes.items())
        return f"{node.layer}: {listing}"

    return on_nodes(nodes_of(*operators, condition=condition), change)


def operator_changed(
    others: Mapping[str, str], condition: Callable[[LayerGraph, Node], bool] = lambda *_: True
) -> Native:
    """Another operator of the same operands.

    Args:
        others: What each operator is taken for.
        condition: On the nodes.
    """

    def change(editor: Editor, node: Node, _: np.random.Generator) -> str:
        editor.set_operator(node, others[node.op], {})
        return f"{node.layer} is {others[node.op]} instead of {node.op}"

    return on_nodes(nodes_of(*others, condition=condition), change)


def inserted_behind(
    operators: Sequence[str],
    steps: Steps,
    label: str,
    words: str,
    condition: Callable[[LayerGraph, Node], bool] = lambda *_: True,
) -> Native:
    """Operators behind a node's result, if that can be reached.

    Args:
        operators: Behind which nodes.
        steps: The chain.
        label: For the new names.
        words: For a person; "{name}" stands for the layer's.
        condition: On the nodes.
    """

    def reachable(graph: LayerGraph, node: Node) -> bool:
        tensor = graph.tensors[node.outputs[0]]
        return tensor.observable and tensor.is_real and condition(graph, node)

    def change(editor: Editor, node: Node, generator: np.random.Generator) -> str:
        insert(editor, node.outputs[0], steps(generator), label)
        return words.format(name=node.layer)

    return on_nodes(nodes_of(*operators, condition=reachable), change)


def inserted_at(
    tensors: Callable[[LayerGraph], Sequence[str]],
    steps: Callable[[tuple[int, ...], np.random.Generator], Sequence[Step]],
    label: str,
    words: str,
) -> Native:
    """Operators behind an input or an output of the network.

    Args:
        tensors: Which.
        steps: The chain, for the tensor's shape.
        label: For the new names.
        words: For a person; "{name}" stands for the tensor's.
    """

    def change(editor: Editor, place: Node | str, generator: np.random.Generator) -> str:
        name = str(place)
        insert(editor, name, steps(shape_of(editor.graph, name), generator), label)
        return words.format(name=name)

    return Native(tensors, change)


def float_inputs(graph: LayerGraph) -> Sequence[str]:
    """The network's inputs of real numbers that somebody reads."""
    return [name for name in graph.inputs if graph.tensors[name].is_real and graph.consumers[name]]


def image_inputs(graph: LayerGraph) -> Sequence[str]:
    """Inputs of pictures with three channels, in either layout."""
    return [
        name for name in float_inputs(graph) if _CHANNELS in shape_of(graph, name)[1::2] and _rank(graph, name) == 4
    ]


def float_outputs(rank: int) -> Callable[[LayerGraph], Sequence[str]]:
    """The network's outputs of real numbers and of a rank, each once."""

    def find(graph: LayerGraph) -> Sequence[str]:
        names = dict.fromkeys(name for name in graph.outputs if name not in graph.inputs)
        return [name for name in names if graph.tensors[name].is_real and _rank(graph, name) == rank]

    return find


def shape_of(graph: LayerGraph, name: str) -> tuple[int, ...]:
    """Sizes; empty where they aren't known."""
    return graph.tensors[name].shape or ()


def numbers(node: Node, role: str) -> Array:
    """A parameter's numbers."""
    return node.parameters[role].numpy()


def _rank(graph: LayerGraph, name: str) -> int:
    return len(shape_of(graph, name))
