"""Take out operators that the target has more often than the source, where steps can't be paired one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from conrepair.editors.operation import NotEditableError
from conrepair.graph.layer_graph import Node
from conrepair.localization.diagnosis.steps import Step
from conrepair.repairs.edits import Graft, Remove
from conrepair.repairs.proposals.partners import known_tensors, layout_of, possible_readers
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting
from conrepair.repairs.transplant import KnownTensor, transplant

__all__ = ["missing_proposals", "surplus_proposals"]


# Put in what only the source has: an operator behind what it reads, with its other operands; a lost join.


def missing_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Each operator that only the source has; then all of them together, where they're one behind the other."""
    known = known_tensors(setting)
    missing = [ours for ours, theirs in setting.reading.pairs if ours is not None and theirs is None]
    for step in missing:
        yield from _behind([step], known, setting)
    if len(missing) > 1:
        yield from _behind(missing, known, setting)


def _behind(steps: Sequence[Step], known: Mapping[str, KnownTensor], setting: ProposalSetting) -> Iterator[Proposal]:
    """The steps behind each tensor that they read, the latest first."""
    region = setting.region
    made = {name for step in steps for name in step.outputs}
    read = dict.fromkeys(name for step in steps for name in step.inputs if name and name not in made)
    layout = layout_of(steps[-1].outputs[0], setting)
    if layout is None:
        return
    nodes = _in_order(steps, setting)
    unknown = [name for name in read if name not in known]
    end = region.target.end
    if len(unknown) == 1 and setting.in_editor.tensor(end) is not None:
        # What it reads is missing too, or written in other pieces: it can only be what the piece gives so far.
        other = layout_of(unknown[0], setting, region.target.graph.tensors[end].shape)
        known = known if other is None else {**known, unknown[0]: KnownTensor(end, other)}
    order = region.target.graph.order
    behind = {known[name].tensor: name for name in read if name in known}
    for tensor in sorted(behind, key=lambda name: -order.get(name, 0)):
        try:
            operations = transplant(nodes, region.source.graph, known, layout, region.constants)
        except NotEditableError:
            return
        readers = possible_readers(tensor, setting)
        if _reads_alone(nodes, behind[tensor], setting):
            readers = readers[::-1]
        yield from ((Graft(tensor, operations, names),) for names in readers)


def _reads_alone(nodes: Sequence[Node], tensor: str, setting: ProposalSetting) -> bool:
    """Whether nothing else of the source reads a tensor: then whatever reads it in the target reads the wrong one."""
    graph = setting.region.source.graph
    names = {node.name for node in nodes}
    return tensor not in graph.outputs and all(node.name in names for node in graph.consumers.get(tensor, ()))


def _in_order(steps: Sequence[Step], setting: ProposalSetting) -> list[Node]:
    chosen = {node.name for step in steps for node in step.nodes}
    return [node for node in setting.region.source.graph.nodes if node.name in chosen]


def surplus_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Each operator of one operand that the target's side has more of its kind; the last one first.

    A layer that computes with integers is several operators in the target and one in the source, and what stands
    behind it is in the same piece: it has no partner, nor is it known to have none.
    """
    region = setting.region
    ours = Counter(node.op for node in region.source.nodes)
    theirs = Counter(node.op for node in region.target.nodes)
    for node in reversed(region.target.nodes):
        if theirs[node.op] > ours[node.op] and _keeps_shape(node, setting):
            place = setting.in_editor.of(node)
            if place is not None:
                yield (Remove(place.name),)


def _keeps_shape(node: Node, setting: ProposalSetting) -> bool:
    """Whether an operator can be left out: it makes another tensor of the same shape and type from one."""
    tensors = setting.region.target.graph.tensors
    if len(node.inputs) != 1 or len(node.outputs) != 1 or node.parameters or not node.inputs[0]:
        return False
    before, after = tensors[node.inputs[0]], tensors[node.outputs[0]]
    return (before.shape, before.dtype) == (after.shape, after.dtype)
