"""Write anew what differs, with the source's operators and numbers: one layer, or at last the whole piece."""

from __future__ import annotations

from collections.abc import Iterator

from conrepair.editors.operation import NotEditableError
from conrepair.localize.diagnosis.attributes import attribute_differences
from conrepair.localize.diagnosis.differences import layouts_of
from conrepair.localize.diagnosis.parameters import compare_parameters
from conrepair.localize.diagnosis.steps import MOVES, Step, step_of
from conrepair.repair.edits import Graft
from conrepair.repair.proposals.partners import is_quantized, known_tensors, layout_of
from conrepair.repair.proposals.proposal import Proposal, Setting
from conrepair.repair.transplant import Known, transplant

__all__ = ["rewritten_piece_proposals", "rewritten_step_proposals"]

_MOST = 12  # operators of the source in a piece that's written anew as a whole


def rewritten_step_proposals(setting: Setting) -> Iterator[Proposal]:
    """Each layer that differs, computed as the source does; none of those that compute with integers."""
    region = setting.region
    known = known_tensors(setting)
    graph = region.target.graph
    for ours, theirs in setting.reading.pairs:
        if ours is None or theirs is None or len(ours.outputs) != 1 or len(theirs.outputs) != 1:
            continue
        if not _differ(ours, theirs, setting) or is_quantized(theirs, graph):
            continue
        tensor = theirs.outputs[0]
        layout = layout_of(ours.outputs[0], setting)
        if layout is None or setting.places.tensor(tensor) is None:
            continue
        read = dict(known)
        for one, two in zip(ours.inputs, theirs.inputs, strict=False):
            shape = graph.tensors[two].shape if two in graph.tensors else None
            guessed = None if one in read or not one else layout_of(one, setting, shape)
            if guessed is not None and setting.places.tensor(two) is not None:
                read[one] = Known(two, guessed)
        names = {node.name for node in ours.nodes}
        nodes = [node for node in region.source.graph.nodes if node.name in names]
        try:
            yield (Graft(tensor, transplant(nodes, region.source.graph, read, layout)),)
        except NotEditableError:
            continue


def rewritten_piece_proposals(setting: Setting) -> Iterator[Proposal]:
    """The whole piece, where it's small, from the tensors in front of it; none that computes with integers."""
    region = setting.region
    nodes = region.source.nodes
    if not nodes or len(nodes) > _MOST or setting.places.tensor(region.target.end) is None:
        return
    if any(is_quantized(step_of(node), region.target.graph) for node in region.target.nodes):
        return
    cuts = {
        source: Known(target, region.layouts[target])
        for target, source in region.partners.items()
        if source in region.source.begins and setting.places.tensor(target) is not None
    }
    try:
        yield (Graft(region.target.end, transplant(nodes, region.source.graph, cuts, region.layout)),)
    except NotEditableError:
        return


def _differ(ours: Step, theirs: Step, setting: Setting) -> bool:
    if ours.op != theirs.op or ours.op in MOVES or set(ours.parameters) != set(theirs.parameters):
        return True
    if any(attribute_differences(ours, theirs, layouts_of(setting.region))):
        return True
    return any(compare_parameters(ours.parameters[role], theirs.parameters[role]) for role in ours.parameters)
