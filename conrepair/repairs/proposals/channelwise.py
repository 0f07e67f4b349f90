"""Give the product and the sum that stand for a normalization the numbers that it comes to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.localization.diagnosis.channelwise import CHANNELWISE
from conrepair.repairs.held import set_to
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting

__all__ = ["channelwise_proposals"]


def channelwise_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Both operands, where one node scales channels and one shifts them."""
    for ours, theirs in setting.reading.pairs:
        if ours is None or theirs is None or {ours.op, theirs.op} != {CHANNELWISE} or len(theirs.nodes) != 2:
            continue
        nodes = {node.op: node for node in theirs.nodes}
        if nodes.keys() != {"Add", "Mul"}:
            continue
        factor, offset = (ours.parameters[role].numpy() for role in ("factor", "offset"))
        if nodes["Mul"].inputs == nodes["Add"].outputs:
            with np.errstate(divide="ignore", invalid="ignore"):
                offset = offset / factor
        edits = [
            set_to(setting.in_editor.of(nodes[op]), "operand", values.astype(np.float32))
            for op, values in (("Mul", factor), ("Add", offset))
        ]
        found = tuple(edit for edit in edits if edit is not None and np.isfinite(edit.values).all())
        if len(found) == 2:
            yield found
