"""Write anew what differs, with the source's operators and numbers: one layer, or at last the whole piece."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from conrepair.diagnosis.localization.faces.attributes import attribute_differences
from conrepair.diagnosis.localization.faces.differences import layouts_of
from conrepair.diagnosis.localization.faces.numbers.parameters import compare_parameters
from conrepair.diagnosis.localization.faces.steps.steps import MOVES, Step, step_of
from conrepair.diagnosis.repairs.edits import Graft
from conrepair.diagnosis.repairs.proposals.partners import is_quantized, known_tensors, layout_of
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, ProposalSetting
from conrepair.diagnosis.repairs.transplant import KnownTensor, transplant
from conrepair.formats.editing.operation import NotEditableError, Operation
from conrepair.ground.graph.kinds import Kind

_MOST = 12  # operators of the source in a piece that's written anew as a whole
_FEW = 2  # places that differ, which changes of single places are tried for first


def rewritten_step_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Each layer that differs, computed as the source does; none of those that compute with integers."""
    graph = setting.region.target.graph

    def is_wanted(ours: Step, theirs: Step) -> bool:
        return _differ(ours, theirs, setting) and not is_quantized(theirs, graph)

    for tensor, operations in steps_anew(setting, is_wanted):
        yield (Graft(tensor, operations),)


def rewritten_piece_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The whole piece, where it's small, from the tensors in front of it; none that computes with integers."""
    for tensor, operations in piece_anew(setting):
        yield (Graft(tensor, operations),)


def other_piece_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The whole piece, where it computes in another way: most of what the source computes differs, operators too.

    That is one edit; it would take as many changes as places differ to do the same. What differs in weights and
    attributes alone is repaired where it is. Where more places differ than the source has operators, one of these is
    spelled out in the target: then places don't tell how much is wrong.
    """
    certain = [finding for finding in setting.reading.findings if finding.is_certain]
    places = {finding.cause for finding in certain}
    operators = {finding.cause for finding in certain if finding.kind is Kind.GRAPH}
    computing = sum(node.op not in MOVES for node in setting.region.source.nodes)
    if len(operators) > 1 and max(_FEW, computing / 2) < len(places) <= computing:
        yield from rewritten_piece_proposals(setting)


def steps_anew(
    setting: ProposalSetting, is_wanted: Callable[[Step, Step], bool]
) -> Iterator[tuple[str, tuple[Operation, ...]]]:
    """Layers of the target as the source has them.

    Args:
        setting: The piece.
        is_wanted: Says of the source's step and of the target's whether it's one.

    Yields:
        The target's tensor, and what computes it.
    """
    region = setting.region
    known = known_tensors(setting)
    graph = region.target.graph
    for ours, theirs in setting.paired:
        if len(ours.outputs) != 1 or len(theirs.outputs) != 1:
            continue
        if not is_wanted(ours, theirs):
            continue
        tensor = theirs.outputs[0]
        layout = layout_of(ours.outputs[0], setting)
        if layout is None or setting.in_editor.tensor(tensor) is None:
            continue
        read = dict(known)
        for one, two in zip(ours.inputs, theirs.inputs, strict=False):
            shape = graph.tensors[two].shape if two in graph.tensors else None
            guessed = None if one in read or not one else layout_of(one, setting, shape)
            if guessed is not None and setting.in_editor.tensor(two) is not None:
                read[one] = KnownTensor(two, guessed)
        names = {node.name for node in ours.nodes}
        nodes = [node for node in region.source.graph.nodes if node.name in names]
        try:
            yield tensor, transplant(nodes, region.source.graph, read, layout, region.constants)
        except NotEditableError:
            continue


def piece_anew(setting: ProposalSetting, *, of_integers: bool = False) -> Iterator[tuple[str, tuple[Operation, ...]]]:
    """The whole segment as in the source, where it's small and the editor can write it.

    Args:
        setting: The piece.
        of_integers: Whether it must be one that computes with integers; else it must be none.

    Yields:
        The target's tensor at its end, and what computes it.
    """
    region = setting.region
    nodes = region.source.nodes
    if not nodes or len(nodes) > _MOST or setting.in_editor.tensor(region.target.end) is None:
        return
    if any(is_quantized(step_of(node), region.target.graph) for node in region.target.nodes) is not of_integers:
        return
    cuts = {
        source: KnownTensor(target, region.layouts[target])
        for target, source in region.partners.items()
        if source in region.source.begins and setting.in_editor.tensor(target) is not None
    }
    with contextlib.suppress(NotEditableError):
        yield region.target.end, transplant(nodes, region.source.graph, cuts, region.layout, region.constants)


def _differ(ours: Step, theirs: Step, setting: ProposalSetting) -> bool:
    if ours.op != theirs.op or ours.op in MOVES or set(ours.parameters) != set(theirs.parameters):
        return True
    if any(attribute_differences(ours, theirs, layouts_of(setting.region))):
        return True
    return any(compare_parameters(ours.parameters[role], theirs.parameters[role]) for role in ours.parameters)
