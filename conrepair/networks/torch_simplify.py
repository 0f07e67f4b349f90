"""Write what the inputs' sizes and types tell as such, and drop what computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node

__all__ = ["simplify"]

_FILLS: Mapping[str, float | None] = {
    "aten::new_zeros": 0, "aten::new_ones": 1, "aten::new_full": None, "aten::new_empty": 0,
    "aten::zeros_like": 0, "aten::ones_like": 1, "aten::full_like": None, "aten::empty_like": 0,
}  # fmt: skip
_LIKE = {
    "aten::expand_as": torch.ops.aten.expand.default,
    "aten::view_as": torch.ops.aten.view.default,
    "aten::reshape_as": torch.ops.aten.reshape.default,
}


def simplify(graph: Graph, values: Mapping[Node, Any], outputs: Sequence[Node]) -> None:
    """Let no operator read a tensor of which it needs only the size or type.

    A mask that is made "like" an activation would otherwise depend on the network's inputs.

    Args:
        graph: Changed in place.
        values: What its nodes give, without content.
        outputs: The results; others (states that the program would write back) are dropped.
    """
    for node in list(graph.nodes):
        value = values.get(node)
        if node.op != "call_function":
            continue
        if isinstance(value, bool | int | float):
            _replace_by_number(node, value)
        elif isinstance(node.target, torch._ops.OpOverload) and isinstance(value, torch.Tensor):
            _forget_likeness(node, value)
    graph.output_node().args = (tuple(outputs),)
    for node in reversed(list(graph.nodes)):
        if node.op in {"call_function", "get_attr"} and not node.users:
            graph.erase_node(node)


def _replace_by_number(node: Node, value: float) -> None:
    for user in list(node.users):
        replaced = torch.fx.node.map_arg((user.args, user.kwargs), lambda item: value if item is node else item)
        user.args, user.kwargs = replaced


def _forget_likeness(node: Node, value: torch.Tensor) -> None:
    schema, aten = node.target._schema, torch.ops.aten
    if schema.name == "aten::type_as" or (schema.name == "aten::to" and schema.overload_name == "other"):
        node.target, node.args, node.kwargs = aten.to.dtype, (node.args[0], value.dtype), {}
    elif not all(isinstance(size, int) for size in value.shape):
        return
    elif schema.name in _LIKE:
        node.target, node.args = _LIKE[schema.name], (node.args[0], list(value.shape))
    elif schema.name in _FILLS:
        fill = _FILLS[schema.name]
        if fill is None:
            fill = node.args[2 if schema.name == "aten::new_full" else 1]
        node.target, node.args, node.kwargs = aten.full.default, (list(value.shape), fill), {"dtype": value.dtype}
