"""Give the numbers of a recurrent layer to the constants that hold them, in the order in which these hold gates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.localization.diagnosis.gates import carried_gates
from conrepair.localization.diagnosis.parameters import compare_parameters
from conrepair.localization.diagnosis.recurrence import recurrent_layer
from conrepair.localization.diagnosis.recurrent import form_of
from conrepair.localization.diagnosis.turns import odd_members, turns_of
from conrepair.localization.quantization import has_right_scales
from conrepair.repairs.edits import Requantize, SetParameter
from conrepair.repairs.held import set_to
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting

__all__ = ["odd_parameter_proposals", "recurrent_proposals"]


# In an unrolled loop, where no step can be paired: give one turn the numbers that the other turns have.


def odd_parameter_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The numbers that several operators of a piece share, for one alike that has others; the likest ones first.

    A loop's operators occur once for each turn, with the same numbers. Which of those that have one shape an operator
    should have isn't known where they're no more like the one's than like the other's.
    """
    for node, role, usual in odd_members(turns_of(setting.region.target.nodes)):
        edits = (set_to(setting.in_editor.of(node), role, item) for _, item in usual)
        yield from ((edit,) for edit in edits if edit is not None)


def recurrent_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The source's numbers, wherever the target has them: in a loop's body, in steps one behind the other.

    Results tell in which order the target's gates are wrong, its constants where they stand: what holds the gates of
    the wrong form gets those of the right one. Where no form gives what the target computes, numbers differ.
    """
    found = recurrent_layer(setting.region.source.nodes)
    if found is None or len(setting.region.target.nodes) <= 1:
        return
    form = form_of(setting.region)
    sought, right = (found[1], found[1]) if form is None else (form.wrong, form.right)
    edits: list[SetParameter | Requantize] = []
    for item in carried_gates(sought, right, setting.region.target.nodes):
        place, values = setting.in_editor.of(item.node), item.right.astype(np.float32)
        held = None if place is None else place.parameters.get(item.role)
        if place is None or held is None or held.shape != values.shape:
            continue
        if compare_parameters(item.wanted, item.parameter) is not None:
            keeps = has_right_scales(values, item.parameter)
            edits.append((SetParameter if keeps else Requantize)(place.name, item.role, values))
    if edits:
        yield tuple(edits)
