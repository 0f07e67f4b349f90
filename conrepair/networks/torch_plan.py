"""Which nodes a piece of a PyTorch graph computes, and how long their values are held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch.fx import Node

from conrepair.networks.torch_constants import TorchConstants


def needed(
    given: Mapping[Node, str], wanted: Sequence[Node], constants: TorchConstants
) -> tuple[list[Node], set[Node]]:
    """The nodes to compute, in the graph's order, and those whose fed value is read."""
    found: set[Node] = set()
    reads: set[Node] = set()
    pending = [node for node in wanted if node in constants.dependent]
    while pending:
        node = pending.pop()
        if node in found:
            continue
        if node.op == "placeholder":
            raise ValueError(f"the input {node.name} is needed, but isn't fed")
        found.add(node)
        for origin in node.all_input_nodes:
            if origin in given:
                reads.add(origin)
            elif origin in constants.dependent:
                pending.append(origin)
    return sorted(found), reads


def released(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """By node, whose values nobody needs once it has been computed.

    Args:
        nodes: What to compute, in the graph's order.
    """
    last = {read: node for node in nodes for read in (node, *node.all_input_nodes)}
    found: dict[Node, list[Node]] = {node: [] for node in nodes}
    for read, node in last.items():
        found[node].append(read)
    return found
