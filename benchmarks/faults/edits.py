"""Changes of a graph that several faults are made of; all in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir

from conrepair.editors.editor import Step
from conrepair.onnx_passes.initializers import new_initializer

__all__ = [
    "Array",
    "Step",
    "bypass",
    "constant_of",
    "dtype_of",
    "graph_of",
    "insert_behind",
    "insert_between",
    "neighbours",
    "numbers_of",
    "set_constant",
    "swap_inputs",
]

Array = npt.NDArray[Any]


def graph_of(value: onnx_ir.Value) -> onnx_ir.Graph:
    """The graph that a value belongs to.

    Raises:
        ValueError: if it belongs to none, or to a function.
    """
    node = value.producer()
    graph = value.graph if node is None else node.graph
    if not isinstance(graph, onnx_ir.Graph):
        raise ValueError(f"{value.name} belongs to no graph")
    return graph


def constant_of(node: onnx_ir.Node, index: int) -> Array | None:
    """An input's numbers, if they are known."""
    value = node.inputs[index] if index < len(node.inputs) else None
    tensor = None if value is None else onnx_ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def numbers_of(node: onnx_ir.Node, index: int) -> Array:
    """An input's numbers, at a place that was chosen because they are known.

    Raises:
        ValueError: if they aren't.
    """
    array = constant_of(node, index)
    if array is None:
        raise ValueError(f"input {index} of {node.name} isn't constant")
    return array


def dtype_of(value: onnx_ir.Value) -> np.dtype[Any]:
    """Numpy's type of a value, at a place that was chosen because it's known.

    Raises:
        ValueError: if it isn't.
    """
    if value.dtype is None:
        raise ValueError(f"{value.name} has no type")
    return value.dtype.numpy()


def set_constant(node: onnx_ir.Node, index: int, array: Array) -> None:
    """Give one input of one node other numbers; whoever shares the old ones keeps them."""
    value = node.inputs[index]
    if value is None:
        raise ValueError(f"{node.name} has no input {index}")
    name = f"{value.name}/{node.name}"
    node.replace_input_with(index, new_initializer(_graph(node), name, np.ascontiguousarray(array)))


def insert_behind(value: onnx_ir.Value, steps: Sequence[Step], label: str) -> tuple[onnx_ir.Node, ...]:
    """Put a chain of operators between a value and all that read it, a graph's output included.

    Args:
        value: Of the main graph.
        steps: Operator, attributes, and the constants behind its first input.
        label: Beginning of the new names.

    Returns:
        The new nodes.
    """
    graph, producer = graph_of(value), value.producer()
    uses = list(value.uses())
    nodes = _chain(graph, value, steps, label)
    last = nodes[-1].outputs[0]
    last.type, last.shape = value.type, value.shape
    for use in uses:
        use.node.replace_input_with(use.idx, last)
    if value.is_graph_output():
        graph.outputs[graph.outputs.index(value)] = last
        last.name, value.name = value.name, f"{value.name}/{label}"
    if producer is None:
        graph.insert_before(graph[0], nodes)
    else:
        graph.insert_after(producer, nodes)
    return nodes


def insert_between(node: onnx_ir.Node, index: int, steps: Sequence[Step], label: str) -> tuple[onnx_ir.Node, ...]:
    """Put a chain of operators in front of one input of one node; arguments as for `insert_behind`."""
    value = node.inputs[index]
    if value is None:
        raise ValueError(f"{node.name} has no input {index}")
    graph = _graph(node)
    nodes = _chain(graph, value, steps, label)
    graph.insert_before(node, nodes)
    node.replace_input_with(index, nodes[-1].outputs[0])
    return nodes


def bypass(node: onnx_ir.Node, index: int = 0) -> tuple[onnx_ir.Node, ...]:
    """Take a node of one output out: who read it reads its input instead.

    Returns:
        Its neighbours.
    """
    source, result = node.inputs[index], node.outputs[0]
    if source is None:
        raise ValueError(f"{node.name} has no input {index}")
    around = neighbours(node)
    if result.is_graph_output():
        node.op_type, node.domain = "Identity", ""
        for position in range(len(node.inputs)):
            node.replace_input_with(position, None)
        node.resize_inputs(1)
        node.replace_input_with(0, source)
        node.attributes.clear()
        return (node, *around)
    onnx_ir.convenience.replace_all_uses_with([result], [source])
    _graph(node).remove(node, safe=True)
    return around


def neighbours(node: onnx_ir.Node) -> tuple[onnx_ir.Node, ...]:
    """What a node reads from and is read by."""
    before = [value.producer() for value in node.inputs if value is not None]
    behind = [use.node for value in node.outputs for use in value.uses()]
    return tuple(dict.fromkeys(item for item in [*before, *behind] if item is not None))


def swap_inputs(node: onnx_ir.Node, one: int, two: int) -> None:
    """Exchange two inputs of a node."""
    first, second = node.inputs[one], node.inputs[two]
    node.replace_input_with(one, second)
    node.replace_input_with(two, first)


def _chain(
    graph: onnx_ir.Graph,
    value: onnx_ir.Value,
    steps: Sequence[Step],
    label: str,
) -> tuple[onnx_ir.Node, ...]:
    nodes: list[onnx_ir.Node] = []
    for operator, attributes, constants in steps:
        name = f"{value.name}/{label}/{len(nodes)}"
        operands = [
            new_initializer(graph, f"{name}/{position}", np.ascontiguousarray(array))
            for position, array in enumerate(constants)
        ]
        source = nodes[-1].outputs[0] if nodes else value
        node = onnx_ir.node(operator, [source, *operands], attributes=dict(attributes), name=name)
        node.outputs[0].name = f"{name}/result"
        nodes.append(node)
    return tuple(nodes)


def _graph(node: onnx_ir.Node) -> onnx_ir.Graph:
    if not isinstance(node.graph, onnx_ir.Graph):
        raise ValueError(f"{node.name} belongs to no graph")
    return node.graph
