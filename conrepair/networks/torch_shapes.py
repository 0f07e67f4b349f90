"""What each node of a PyTorch graph gives, without computing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.fx import Node

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.torch_double import arithmetic

__all__ = ["attribute_of", "infer_values"]


def infer_values(
    module: torch.fx.GraphModule,
    states: Mapping[str, torch.Tensor],
    given: Mapping[Node, TensorSpec],
    *,
    double: bool = False,
) -> tuple[dict[Node, Any], bool]:
    """Run a graph on fake tensors, which have sizes, strides and shared storages, but no content.

    Args:
        module: Holds the graph.
        states: Tensors, by the name of their placeholder.
        given: The inputs, with sizes that are numbers.
        double: Whether operators are called in float64.

    Returns:
        By node, fake tensors, numbers, tuples and lists of them; and whether these are what running the graph gives.
        Where sizes depend on the data, it's what the program itself says, in which sizes may be symbols.

    Raises:
        ValueError: if an input has another number of dimensions, a fixed size, or another type.
    """
    for node, spec in given.items():
        _check(node, spec)
    graph = module.graph
    values: dict[Node, Any] = {}
    # Grad mode off: in training IR a reshape of a parameter would otherwise be traced for gradients.
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad(), arithmetic(double=double):
        try:
            for node in graph.nodes:
                if node in given:
                    values[node] = torch.empty(given[node].shape, dtype=getattr(torch, given[node].dtype))
                elif node.op == "placeholder":
                    values[node] = mode.from_tensor(states[node.name]) if node.name in states else None
                elif node.op == "get_attr":
                    values[node] = attribute_of(module, node)
                elif node.op == "call_function":
                    if isinstance(node.target, torch._ops.HigherOrderOperator):  # they may ask for a compiler
                        return _recorded(graph, given), False
                    arguments, options = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
                    values[node] = node.target(*arguments, **options)
        except (DataDependentOutputException, DynamicOutputShapeException):
            return _recorded(graph, given), False
    return values, True


def attribute_of(module: torch.fx.GraphModule, node: Node) -> Any:
    """What a get_attr node names: a subgraph of control flow, or a tensor."""
    found: Any = module
    for part in str(node.target).split("."):
        found = getattr(found, part)
    return found


def _recorded(graph: torch.fx.Graph, given: Mapping[Node, TensorSpec]) -> dict[Node, Any]:
    values = {node: node.meta.get("val") for node in graph.nodes}
    for node, spec in given.items():
        values[node] = torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta")
    for node in graph.nodes:
        if node.target is torch.ops.aten.sym_size.int and node.args[0] in given:
            values[node] = given[node.args[0]].shape[node.args[1]]
    return values


def _check(node: Node, spec: TensorSpec) -> None:
    recorded = node.meta.get("val")
    if not isinstance(recorded, torch.Tensor):
        return
    fits = len(recorded.shape) == len(spec.shape) and all(
        not isinstance(fixed, int) or fixed == size for fixed, size in zip(recorded.shape, spec.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"input {node.name} has the fixed shape {list(recorded.shape)}")
