"""Two changes at once, of which neither helps alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from conrepair.repairs.proposals.attributes import attribute_proposals
from conrepair.repairs.proposals.everywhere import everywhere
from conrepair.repairs.proposals.missing import missing_proposals
from conrepair.repairs.proposals.operators import extra_proposals
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting

__all__ = ["attribute_and_extra_proposals", "displaced_proposals"]

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
