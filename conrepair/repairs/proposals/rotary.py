"""Let a rotation turn the features together that the source's does: they're put in its order, and back behind it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.editors.operation import Operation
from conrepair.localization.diagnosis.rotary import OtherForm, other_forms
from conrepair.repairs.edits import Graft
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting

__all__ = ["rotary_proposals"]


def rotary_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """What diagnosis has proven, for all rotations of a piece: whatever operators the target writes them with.

    Of a piece with several, which computes scores of them, the order behind them may make no difference.
    """
    found = [edits for form in other_forms(setting.region) if (edits := _reordered(form, setting))]
    if len(found) > 1:
        yield tuple(edits[0] for edits in found)
    if found:
        yield tuple(edit for edits in found for edit in edits)


def _reordered(form: OtherForm, setting: ProposalSetting) -> Proposal:
    if form.axes is None or None in (setting.in_editor.tensor(form.begin), setting.in_editor.tensor(form.end)):
        return ()
    back = tuple(map(int, np.argsort(form.order)))
    return tuple(
        Graft(tensor, (Operation("Gather", (tensor,), {"axis": axis}, {"indices": np.array(order, np.int64)}),))
        for tensor, axis, order in zip((form.begin, form.end), form.axes, (form.order, back), strict=True)
    )
