"""In an unrolled loop, where no step can be paired: give one turn the numbers that the other turns have."""

from __future__ import annotations

from collections.abc import Iterator

from conrepair.localization.diagnosis.odd_ones import odd_members, turns_of
from conrepair.repairs.held import set_to
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting

__all__ = ["odd_parameter_proposals"]


def odd_parameter_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The numbers that several operators of a piece share, for one alike that has others; the likest ones first.

    A loop's operators occur once for each turn, with the same numbers. Which of those that have one shape an operator
    should have isn't known where they're no more like the one's than like the other's.
    """
    for node, role, usual in odd_members(turns_of(setting.region.target.nodes)):
        edits = (set_to(setting.in_editor.of(node), role, item) for _, item in usual)
        yield from ((edit,) for edit in edits if edit is not None)
