"""Make the one change of the pieces of a layer after which, computed in NumPy, they give what the source has."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from conrepair.editors.operation import Operation
from conrepair.graph.layer_graph import Node
from conrepair.localization.diagnosis.changes import Change, fixing_change
from conrepair.repairs.edits import Edit, Graft, Remove, SetAttributes, SetParameter
from conrepair.repairs.proposals.attributes import attribute_proposals
from conrepair.repairs.proposals.operators import exchanged, extra_proposals
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting, everywhere
from conrepair.repairs.proposals.surplus import missing_proposals

__all__ = ["attribute_and_extra_proposals", "change_proposals", "displaced_proposals"]


# Two changes at once, of which neither helps alone.

_MOST = 4  # of either
_attributes = everywhere(attribute_proposals)


def displaced_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """What's missing put in and what's too many taken out, where they are the same operator at another place.

    A mask that's added behind the softmax in place of before it.
    """
    pairs = setting.reading.pairs
    missing = {ours.op for ours, theirs in pairs if ours is not None and theirs is None}
    surplus = {theirs.op for ours, theirs in pairs if ours is None and theirs is not None}
    if not missing.isdisjoint(surplus):
        yield from _both(missing_proposals(setting), extra_proposals(setting))


def attribute_and_extra_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Attributes set and what's too many taken out: padding by an operator of its own, with other numbers."""
    yield from _both(_attributes(setting), extra_proposals(setting))


def _both(first: Iterator[Proposal], second: Iterator[Proposal]) -> Iterator[Proposal]:
    others = list(islice(second, _MOST))
    for one in islice(first, _MOST if others else 0):
        yield from ((*one, *other) for other in others)


def change_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """What diagnosis has found by computing the pieces with one of them changed."""
    if len(setting.region.target.nodes) <= len(setting.region.source.nodes):
        return  # nothing is written in pieces
    change = fixing_change(setting.region)
    place = None if change is None else setting.in_editor.of(change.nodes[-1])
    edit = None if change is None or place is None else _edit(place, change, setting)
    if edit is not None:
        yield (edit,)


def _edit(place: Node, change: Change, setting: ProposalSetting) -> Edit | None:
    other = change.other
    if other is None:
        return Remove(place.name)
    if change.is_missing:
        tensor = setting.in_editor.tensor(other.inputs[0])
        return None if tensor is None else Graft(tensor, (Operation(other.op, (tensor,)),))
    if change.attribute:
        return SetAttributes(place.name, {change.attribute: other.attributes[change.attribute]})
    if change.number:
        if "operand" not in place.parameters:
            return None
        held = place.parameters["operand"]
        number = np.broadcast_to(other.parameters["operand"].numpy(), held.shape)
        return SetParameter(place.name, "operand", np.array(number, np.float32))
    return exchanged(place, other)
