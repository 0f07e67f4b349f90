"""Make the one change of the pieces of a layer after which, computed in NumPy, they give what the source has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.graph.layer_graph import Node
from conrepair.localization.diagnosis.changes import Change, fixing_change
from conrepair.repairs.edits import Edit, Remove, SetOperator, SetParameter, SwapInputs
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting

__all__ = ["change_proposals"]


def change_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """What diagnosis has found by computing the pieces with one of them changed."""
    if len(setting.region.target.nodes) <= len(setting.region.source.nodes):
        return  # nothing is written in pieces
    change = fixing_change(setting.region)
    place = None if change is None else setting.in_editor.of(change.node)
    edit = None if change is None or place is None else _edit(place, change)
    if edit is not None:
        yield (edit,)


def _edit(place: Node, change: Change) -> Edit | None:
    node, other = change.node, change.other
    if other is None:
        return Remove(place.name)
    if change.number:
        if "operand" not in place.parameters:
            return None
        held = place.parameters["operand"]
        number = np.broadcast_to(other.parameters["operand"].numpy(), held.shape)
        return SetParameter(place.name, "operand", np.array(number, np.float32))
    if other.op != node.op:
        return SetOperator(place.name, other.op, dict(other.attributes))
    return SwapInputs(place.name, 0, 1)
