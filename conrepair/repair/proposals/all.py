"""All sorts of proposals, in the order in which they're tried."""

from __future__ import annotations

from collections.abc import Iterator

from conrepair.editors.editor import Editor
from conrepair.localize.diagnosis.differences import readings_of
from conrepair.localize.diagnosis.region import Region
from conrepair.repair.patch import Patch
from conrepair.repair.places import Places
from conrepair.repair.proposals.attributes import attribute_proposals, operator_proposals, order_proposals
from conrepair.repair.proposals.folded import folded_proposals
from conrepair.repair.proposals.missing import missing_proposals
from conrepair.repair.proposals.operators import extra_proposals, move_proposals, mutation_proposals
from conrepair.repair.proposals.parameters import parameter_proposals
from conrepair.repair.proposals.proposal import Proposal, Proposer, Setting
from conrepair.repair.proposals.rewritten import rewritten_piece_proposals, rewritten_step_proposals
from conrepair.repair.proposals.surplus import surplus_proposals

__all__ = ["proposals"]

_PROPOSERS: tuple[Proposer, ...] = (
    attribute_proposals,
    parameter_proposals,
    folded_proposals,
    extra_proposals,
    move_proposals,
    mutation_proposals,
    operator_proposals,
    order_proposals,
    missing_proposals,
    surplus_proposals,
    rewritten_step_proposals,
)


_WHOLE: tuple[Proposer, ...] = (rewritten_piece_proposals,)


def proposals(region: Region, editor: Editor, *, whole: bool = False) -> Iterator[Proposal]:
    """What could mend a guilty piece: what the shortest explanation asks for first, each once.

    Args:
        region: The piece.
        editor: Of the target.
        whole: Ways to write the piece anew, instead of changes in it.
    """
    seen = set[str]()
    places = Places(editor.graph)
    readings = readings_of(region)
    for reading in readings[:1] if whole else readings:
        setting = Setting(region, reading, places)
        for propose in _WHOLE if whole else _PROPOSERS:
            for proposal in propose(setting):
                if (key := Patch(proposal).digest) not in seen:
                    seen.add(key)
                    yield proposal
