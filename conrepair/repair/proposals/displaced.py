"""Move an operator that stands at another place than in the source: put it in there, and take it out here."""

from __future__ import annotations

from collections.abc import Iterator

from conrepair.repair.proposals.missing import missing_proposals
from conrepair.repair.proposals.operators import extra_proposals
from conrepair.repair.proposals.proposal import Proposal, Setting

__all__ = ["displaced_proposals"]

_MOST = 4  # of either: places to put it in, and operators to take out


def displaced_proposals(setting: Setting) -> Iterator[Proposal]:
    """What's missing put in and what's too many taken out, both at once, where they are the same operator.

    A mask that's added behind the softmax in place of before it: neither edit helps alone.
    """
    pairs = setting.reading.pairs
    missing = {ours.op for ours, theirs in pairs if ours is not None and theirs is None}
    surplus = {theirs.op for ours, theirs in pairs if ours is None and theirs is not None}
    if missing.isdisjoint(surplus):
        return
    out = [proposal for proposal, _ in zip(extra_proposals(setting), range(_MOST), strict=False)]
    for put_in, _ in zip(missing_proposals(setting), range(_MOST), strict=False):
        yield from ((*put_in, *taken_out) for taken_out in out)
