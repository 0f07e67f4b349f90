"""Chains of ATen operators from steps in the neutral vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from conrepair.editors.editor import Step
from conrepair.editors.torch_operators import target_of
from conrepair.graph.layer_graph import Array

__all__ = ["insert_steps"]

aten = torch.ops.aten

_HALF = 10  # ONNX's number for float16


def insert_steps(
    graph: torch.fx.Graph, source: torch.fx.Node, steps: Sequence[Step], label: str
) -> list[torch.fx.Node]:
    """Append a chain behind a node, at the graph's point of insertion.

    Args:
        graph: Of the program.
        source: What the chain reads.
        steps: The chain.
        label: For the new names.

    Returns:
        The new nodes; the last is the result.

    Raises:
        NotEditableError: if a step has no ATen operator.
    """
    nodes: list[torch.fx.Node] = []
    for operator, attributes, constants in steps:
        current = nodes[-1] if nodes else source
        for target, arguments in _calls(graph, nodes, source, current, operator, attributes, constants):
            read = nodes[-1] if nodes else source
            nodes.append(_call(graph, source, target, (read, *arguments), label))
    return nodes


def _calls(
    graph: torch.fx.Graph,
    nodes: list[torch.fx.Node],
    source: torch.fx.Node,
    current: torch.fx.Node,
    operator: str,
    attributes: Mapping[str, Any],
    constants: Sequence[Array],
) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Operators of the chain, each with the arguments behind its first one."""
    numbers = [float(array) for array in constants if array.size == 1]
    if operator in {"Mul", "Sub", "Add", "Div"}:
        yield target_of(operator, {})[0], (numbers[0],)
    elif operator == "Clip" and constants:
        yield aten.clamp.default, tuple(numbers)
    elif operator == "Cast":
        dtype = torch.float16 if attributes["to"] == _HALF else source.meta["val"].dtype
        yield aten.to.dtype, (dtype,)
    elif operator == "QuantizeLinear":
        yield aten.mul.Tensor, (1 / numbers[0],)
        yield aten.round.default, ()
        yield aten.clamp.default, (-128.0, 127.0)
    elif operator == "DequantizeLinear":
        yield aten.mul.Tensor, (numbers[0],)
    elif operator == "Gather":
        axis = int(attributes["axis"])
        pieces = [
            _call(graph, source, aten.slice.Tensor, (current, axis, begin, end), "piece")
            for begin, end in _runs(constants[0])
        ]
        nodes += pieces[:-1]
        nodes.append(_call(graph, source, aten.cat.default, (pieces, axis), "gathered"))
        nodes.insert(-1, pieces[-1])
    else:
        target, rest = target_of(operator, {**attributes})
        yield target, tuple(list(item) if isinstance(item, tuple) else item for item in rest)


def _runs(indices: Array) -> Iterator[tuple[int, int]]:
    """Begins and ends of neighbouring rising indices."""
    begin = 0
    for place in range(1, len(indices) + 1):
        if place == len(indices) or indices[place] != indices[place - 1] + 1:
            yield int(indices[begin]), int(indices[place - 1]) + 1
            begin = place


def _call(
    graph: torch.fx.Graph, source: torch.fx.Node, target: Any, arguments: tuple[Any, ...], label: str
) -> torch.fx.Node:
    node = graph.create_node("call_function", target, arguments, name=f"{label}_{target._schema.name[6:]}")
    values = torch.fx.map_arg(arguments, lambda item: item.meta["val"])
    node.meta["val"] = target(*values)
    for key in ("nn_module_stack", "torch_fn"):
        if key in source.meta:
            node.meta[key] = source.meta[key]
    return node
