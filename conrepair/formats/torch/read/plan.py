"""Which nodes a piece of a PyTorch graph computes, and how long their values are held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch.fx import Node

from conrepair.formats.torch.read.constants import TorchConstants
from conrepair.ground.data.following import reached


def needed(
    given: Mapping[Node, str], wanted: Sequence[Node], constants: TorchConstants
) -> tuple[list[Node], set[Node]]:
    """The nodes to compute, in the graph's order, and those whose fed value is read."""
    begin = constants.dependent.intersection(wanted)
    ends = constants.dependent.difference(given)
    found = sorted(reached(begin, lambda node: ends.intersection(node.all_input_nodes)))
    if unfed := next((node.name for node in found if node.op == "placeholder"), None):
        raise ValueError(f"the input {unfed} is needed, but isn't fed")
    return found, given.keys() & {item for node in found for item in node.all_input_nodes}


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
