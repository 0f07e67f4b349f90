"""All sorts of proposals, in the order in which they're tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conrepair.diagnosis.localization.faces.differences import readings_of
from conrepair.diagnosis.localization.faces.region import Region
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.diagnosis.repairs.proposals import (
    attributes,
    carried,
    constants,
    folded,
    operators,
    parameters,
    precision,
    rewritten,
    zero_points,
)
from conrepair.diagnosis.repairs.proposals.proposal import (
    EditorNodes,
    Proposal,
    ProposalSetting,
    Proposer,
    RangeOf,
    everywhere,
)
from conrepair.formats.editing.editor import Editor

_VALUES: Sequence[Proposer] = (
    zero_points.zero_point_proposals,
    zero_points.calibration_proposals,
    operators.exchange_proposals,
    operators.rotary_proposals,
    parameters.recurrent_proposals,
    rewritten.other_piece_proposals,
    everywhere(attributes.attribute_proposals),
    precision.rescaled_proposals,
    everywhere(parameters.parameter_proposals),
    everywhere(parameters.added_bias_proposals),
    folded.folded_proposals,
    operators.channelwise_proposals,
    carried.carried_proposals,
    constants.constant_proposals,
)
"""Changes that give what is there the source's values, or what a diagnosis has proven."""

_OPERATORS: Sequence[Proposer] = (
    constants.lost_scale_proposals,
    operators.change_proposals,
    precision.range_proposals,
    precision.requantized_proposals,
    precision.stored_proposals,
    parameters.odd_parameter_proposals,
    attributes.permutation_proposals,
    operators.attribute_and_extra_proposals,
    operators.displaced_proposals,
    operators.extra_proposals,
    operators.move_proposals,
    operators.mutation_proposals,
    attributes.operator_proposals,
    attributes.order_proposals,
    operators.missing_proposals,
    operators.surplus_proposals,
    rewritten.rewritten_step_proposals,
)
"""Changes that may take operators out, or put others in."""

CHANGES: Sequence[Proposer] = (*_VALUES, *_OPERATORS)
"""Proposals that change values in a segment."""

REWRITINGS: Sequence[Proposer] = (rewritten.rewritten_piece_proposals,)
"""Proposals that write a segment anew."""

IN_FLOAT: Sequence[Proposer] = (precision.float_proposals,)
"""Ways to compute what integers compute with real numbers: where nothing else fixes it."""


def proposals(
    region: Region, editor: Editor, range_of: RangeOf, proposers: Sequence[Proposer], named: Sequence[str] = ()
) -> Iterator[Proposal]:
    """Proposals that could fix a faulty segment, those for the reading with the fewest differences first, each once.

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
    # Edits of values before edits of the structure, in every reading of both graphs.
    sorts = ((_VALUES, readings), (_OPERATORS, readings)) if proposers is CHANGES else ((proposers, readings[:1]),)
    for sort, read in sorts:
        for reading in read:
            setting = ProposalSetting(region, reading, in_editor, range_of, tuple(named))
            for propose in sort:
                for proposal in propose(setting):
                    if (key := Patch(proposal).digest) not in seen:
                        seen.add(key)
                        yield proposal
