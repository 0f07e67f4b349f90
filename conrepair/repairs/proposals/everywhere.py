"""What is wrong in several layers of one piece, changed in all of them."""

from __future__ import annotations

from collections.abc import Iterator

from conrepair.repairs.edits import Edit
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting, Proposer

__all__ = ["everywhere"]


def everywhere(propose: Proposer) -> Proposer:
    """A sort of proposals, and all of them together where they change several layers.

    Between layers that are wrong in the same way nothing comes out right, so they are one piece. Together is tried
    first where more than one difference explains an error; which of the edits are needed is found out later.

    Args:
        propose: Changes one layer with each proposal.
    """

    def proposed(setting: ProposalSetting) -> Iterator[Proposal]:
        singles = list(propose(setting))
        largest: dict[str, Proposal] = {}
        for proposal in singles:
            place = _place(proposal[0])
            if len(proposal) > len(largest.get(place, ())):
                largest[place] = proposal
        together = tuple(edit for proposal in largest.values() for edit in proposal)
        several = sum(item.is_certain for item in setting.reading.findings) > 1
        if len(largest) > 1 and several:
            yield together
        yield from singles
        if len(largest) > 1 and not several:
            yield together

    return proposed


def _place(edit: Edit) -> str:
    """What an edit changes: a node, or a tensor."""
    return str(getattr(edit, "node", None) or getattr(edit, "tensor", ""))
