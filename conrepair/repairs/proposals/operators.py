"""Take out what only the target has; exchange what's wrong in a chain of elementwise operators."""

from __future__ import annotations

from collections.abc import Iterator

from conrepair.graph.layer_graph import Node
from conrepair.localization.diagnosis.changes import fixing_mutation
from conrepair.localization.diagnosis.steps import Step
from conrepair.repairs.edits import Edit, Remove, SetAttributes, SetOperator, SwapInputs
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting
from conrepair.repairs.transplant import perm_of

__all__ = ["exchanged", "extra_proposals", "move_proposals", "mutation_proposals"]


_MANY = 8  # steps that only the target has: a layer that's written as many, of which nothing else says which is wrong


def extra_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Each node that only the target has, those first that diagnosis names; then all of a step's, then all."""
    alone: list[Edit] = []
    extra = [theirs for ours, theirs in setting.reading.pairs if ours is None and theirs is not None]
    if len(extra) > _MANY:
        likely = {name: place for place, name in reversed(list(enumerate(setting.named)))}
        extra.sort(key=lambda step: min((likely.get(name, len(likely)) for name in step.layers), default=0))
    for theirs in extra:
        edits = _removed(theirs, setting)
        yield from ((edit,) for edit in edits)
        if len(edits) > 1:
            yield tuple(edits)
        alone += edits
    if len(alone) > 1:
        yield tuple(dict.fromkeys(alone))


def move_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """A transposition in front of the piece, which only the target has: none, or the one to the source's order."""
    region = setting.region
    for begin in region.target.begins:
        node = region.target.graph.producers.get(begin)
        other = region.source.graph.producers.get(region.partners.get(begin, ""))
        if node is None or node.op != "Transpose" or (other is not None and other.op == node.op):
            continue
        place = setting.in_editor.of(node)
        if place is None:
            continue
        yield (Remove(place.name),)
        layout = region.layouts.get(node.inputs[0])
        order = None if layout is None else perm_of(layout)
        if order is not None:
            back = tuple(order.index(axis) for axis in range(len(order)))
            if back != node.attributes.get("perm"):
                yield (SetAttributes(place.name, {"perm": back}),)


def mutation_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The one change of a chain of elementwise operators that makes it the source's function."""
    for ours, theirs in setting.reading.pairs:
        if ours is None or theirs is None or ours.values is None or theirs.values is None:
            continue
        found = fixing_mutation(theirs.nodes[::-1], theirs.inputs[0], theirs.outputs[0], ours.values)
        places = [] if found is None else [setting.in_editor.of(node) for node in found.nodes]
        names = [place.name for place in places if place is not None]
        if found is None or len(names) < len(found.nodes):
            continue
        if found.other is None:
            yield tuple(Remove(name) for name in reversed(names))
        else:
            yield (exchanged(next(filter(None, places)), found.other),)


def exchanged(place: Node, other: Node) -> Edit:
    """The edit that makes of a node one of another operator, or of exchanged operands."""
    if other.op != place.op:
        return SetOperator(place.name, other.op, dict(other.attributes))
    if "operand" in other.parameters:
        return SetAttributes(place.name, {"constant_first": bool(other.attributes.get("constant_first"))})
    return SwapInputs(place.name, 0, 1)


def _removed(step: Step, setting: ProposalSetting) -> list[Edit]:
    places = [setting.in_editor.of(node) for node in step.nodes]
    return [Remove(name) for name in dict.fromkeys(place.name for place in places if place is not None)]
