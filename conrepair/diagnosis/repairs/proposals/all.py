"""All sorts of proposals, in the order in which they're tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conrepair.diagnosis.localization.faces.differences import readings_of
from conrepair.diagnosis.localization.faces.region import Region
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.diagnosis.repairs.proposals.attributes import (
    attribute_proposals,
    operator_proposals,
    order_proposals,
    permutation_proposals,
)
from conrepair.diagnosis.repairs.proposals.carried import carried_proposals
from conrepair.diagnosis.repairs.proposals.constants import constant_proposals, lost_scale_proposals
from conrepair.diagnosis.repairs.proposals.exchanged import (
    channelwise_proposals,
    exchange_proposals,
    rotary_proposals,
)
from conrepair.diagnosis.repairs.proposals.folded import folded_proposals
from conrepair.diagnosis.repairs.proposals.operators import (
    attribute_and_extra_proposals,
    change_proposals,
    displaced_proposals,
    extra_proposals,
    missing_proposals,
    move_proposals,
    mutation_proposals,
    surplus_proposals,
)
from conrepair.diagnosis.repairs.proposals.parameters import (
    added_bias_proposals,
    odd_parameter_proposals,
    parameter_proposals,
    recurrent_proposals,
)
from conrepair.diagnosis.repairs.proposals.precision import (
    float_proposals,
    range_proposals,
    requantized_proposals,
    rescaled_proposals,
    stored_proposals,
)
from conrepair.diagnosis.repairs.proposals.proposal import (
    EditorNodes,
    Proposal,
    ProposalSetting,
    Proposer,
    RangeOf,
    everywhere,
)
from conrepair.diagnosis.repairs.proposals.rewritten import (
    other_piece_proposals,
    rewritten_piece_proposals,
    rewritten_step_proposals,
)
from conrepair.diagnosis.repairs.proposals.zero_points import calibration_proposals, zero_point_proposals
from conrepair.formats.editing.editor import Editor

_VALUES: Sequence[Proposer] = (
    zero_point_proposals,
    calibration_proposals,
    exchange_proposals,
    rotary_proposals,
    recurrent_proposals,
    other_piece_proposals,
    everywhere(attribute_proposals),
    rescaled_proposals,
    everywhere(parameter_proposals),
    everywhere(added_bias_proposals),
    folded_proposals,
    channelwise_proposals,
    carried_proposals,
    constant_proposals,
)
"""Changes that give what is there the source's values, or what a diagnosis has proven."""

_OPERATORS: Sequence[Proposer] = (
    lost_scale_proposals,
    change_proposals,
    range_proposals,
    requantized_proposals,
    stored_proposals,
    odd_parameter_proposals,
    permutation_proposals,
    attribute_and_extra_proposals,
    displaced_proposals,
    extra_proposals,
    move_proposals,
    mutation_proposals,
    operator_proposals,
    order_proposals,
    missing_proposals,
    surplus_proposals,
    rewritten_step_proposals,
)
"""Changes that may take operators out, or put others in."""

CHANGES: Sequence[Proposer] = (*_VALUES, *_OPERATORS)
"""Changes in a piece."""

REWRITINGS: Sequence[Proposer] = (rewritten_piece_proposals,)
"""Ways to write a piece anew."""

IN_FLOAT: Sequence[Proposer] = (float_proposals,)
"""Ways to compute what integers compute with real numbers: where nothing else fixes it."""


def proposals(
    region: Region, editor: Editor, range_of: RangeOf, proposers: Sequence[Proposer], named: Sequence[str] = ()
) -> Iterator[Proposal]:
    """What could fix a guilty piece: what the shortest explanation asks for first, each once.

    Args:
        region: The piece.
        editor: Of the target.
        range_of: Gives the smallest and the largest value of a tensor of the source.
        proposers: `CHANGES`, `REWRITINGS` or `IN_FLOAT`.
        named: Layers of the target that diagnosis names, the likeliest first.
    """
    seen = set[str]()
    in_editor = EditorNodes(editor.graph)
    readings = readings_of(region)
    # However both sides are read: no operator goes, or gets another one's place, where a value of the source does.
    sorts = ((_VALUES, readings), (_OPERATORS, readings)) if proposers is CHANGES else ((proposers, readings[:1]),)
    for sort, read in sorts:
        for reading in read:
            setting = ProposalSetting(region, reading, in_editor, range_of, tuple(named))
            for propose in sort:
                for proposal in propose(setting):
                    if (key := Patch(proposal).digest) not in seen:
                        seen.add(key)
                        yield proposal
