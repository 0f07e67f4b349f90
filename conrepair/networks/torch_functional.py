"""Replace operators that write into what they read, where that is simple.

A segment captures tensors that later operators would overwrite (ReLU(inplace=True) behind a residual), so every value
has to stay what it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

__all__ = ["replace_in_place"]


def replace_in_place(graph: Graph, values: Mapping[Node, Any], *, exact: bool) -> bool:
    """Let readers behind an in-place operator read its result, and let the operator make a new tensor.

    Args:
        graph: Changed in place; names stay.
        values: What its nodes give.
        exact: Whether these share storages as the real ones do.

    Returns:
        Whether that was possible for all. It isn't where one tensor is written and another part or view of the same
        storage is read afterwards.
    """
    nodes = list(graph.nodes)
    position = {node: index for index, node in enumerate(nodes)}
    owners: dict[int, list[Node]] = {}
    for node in nodes:
        for storage in _storages(values.get(node)):
            owners.setdefault(storage, []).append(node)
    for node in nodes:
        if node.op != "call_function" or not _writes(node):
            continue
        if not exact:
            return False
        function = _pure_variant(node)
        written = node.args[0] if node.args else None
        if function is None or not isinstance(written, Node) or not _keeps_type(node, values):
            return False
        (storage,) = _storages(values[written])
        for owner in owners[storage]:
            later = [user for user in owner.users if position[user] > position[node]]
            if owner is node or position[owner] > position[node] or not later:
                continue
            if not _same_view(values[owner], values[written]):
                return False
            for user in later:
                user.replace_input_with(owner, node)
        node.target = function
    return True


def _writes(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and bool(node.target._schema.is_mutable)


def _pure_variant(node: Node) -> Any:
    """The operator that gives the same as a new tensor, if only the first argument is written."""
    schema = node.target._schema
    written = [argument.name for argument in schema.arguments if argument.is_write]
    if written != [schema.arguments[0].name] or not schema.name.endswith("_"):
        return None
    library, name = schema.name.removesuffix("_").split("::")
    packet = getattr(getattr(torch.ops, library), name, None)
    return getattr(packet, schema.overload_name or "default", None)


def _keeps_type(node: Node, values: Mapping[Node, Any]) -> bool:
    """Whether the new tensor is of the type of the one that's written to: other operands don't widen it."""
    types = {value.dtype for value in map(values.get, node.all_input_nodes) if isinstance(value, torch.Tensor)}
    return len(types) == 1


def _storages(value: Any) -> Iterator[int]:
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            yield leaf.untyped_storage()._cdata


def _same_view(one: Any, other: torch.Tensor) -> bool:
    return (
        isinstance(one, torch.Tensor)
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.storage_offset() == other.storage_offset()
        and one.dtype == other.dtype
    )
