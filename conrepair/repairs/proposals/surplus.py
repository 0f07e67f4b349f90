"""Take out operators that the target has more often than the source, where steps can't be paired one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from conrepair.graph.layer_graph import Node
from conrepair.repairs.edits import Remove
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting

__all__ = ["surplus_proposals"]


def surplus_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Each operator of one operand that the target's side has more of its kind; the last one first.

    A layer that computes with integers is several operators in the target and one in the source, and what stands
    behind it is in the same piece: it has no partner, nor is it known to have none.
    """
    region = setting.region
    ours = Counter(node.op for node in region.source.nodes)
    theirs = Counter(node.op for node in region.target.nodes)
    for node in reversed(region.target.nodes):
        if theirs[node.op] > ours[node.op] and _keeps_shape(node, setting):
            place = setting.in_editor.of(node)
            if place is not None:
                yield (Remove(place.name),)


def _keeps_shape(node: Node, setting: ProposalSetting) -> bool:
    """Whether an operator can be left out: it makes another tensor of the same shape and type from one."""
    tensors = setting.region.target.graph.tensors
    if len(node.inputs) != 1 or len(node.outputs) != 1 or node.parameters or not node.inputs[0]:
        return False
    before, after = tensors[node.inputs[0]], tensors[node.outputs[0]]
    return (before.shape, before.dtype) == (after.shape, after.dtype)
