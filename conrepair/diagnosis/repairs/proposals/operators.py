"""Take out what only the target has, put in what only the source has, let it read other tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from conrepair.diagnosis.localization.faces.changes import Change, Exchange, fixing_change, fixing_mutation
from conrepair.diagnosis.localization.faces.exchanged_tensors import (
    crossed_products,
    exchanged_layers,
    fixing_exchange,
)
from conrepair.diagnosis.localization.faces.recurrent.rotary import OtherForm, other_forms
from conrepair.diagnosis.localization.faces.steps.folding import CHANNELWISE
from conrepair.diagnosis.localization.faces.steps.steps import Step, moves_before
from conrepair.diagnosis.repairs.edits import (
    Edit,
    ExchangeReads,
    Graft,
    Remove,
    SetAttributes,
    SetOperator,
    SetParameter,
    SwapInputs,
)
from conrepair.diagnosis.repairs.proposals.attributes import attribute_proposals
from conrepair.diagnosis.repairs.proposals.partners import known_tensors, layout_of, possible_readers
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, ProposalSetting, everywhere, set_to
from conrepair.diagnosis.repairs.transplant import KnownTensor, perm_of, transplant
from conrepair.formats.editing.operation import NotEditableError, Operation
from conrepair.ground.graph.layer_graph import LayerGraph, Node

_MANY = 8  # steps that only the target has: a layer that's written as many, of which nothing else says which is wrong


def extra_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Each node that only the target has, those first that diagnosis names; then all of a step's, then all."""
    alone: list[Edit] = []
    extra = setting.extra
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
    for ours, theirs in setting.paired:
        if ours.values is None or theirs.values is None:
            continue
        found = fixing_mutation(theirs.nodes[::-1], theirs.inputs[0], theirs.outputs[0], ours.values)
        places = [] if found is None else [setting.in_editor.of(node) for node in found.nodes]
        names = [place.name for place in places if place is not None]
        if found is None or len(names) < len(found.nodes):
            continue
        if found.other is None:
            yield tuple(Remove(name) for name in reversed(names))
        else:
            yield (_exchanged(next(filter(None, places)), found.other),)


def _exchanged(place: Node, other: Node) -> Edit:
    """The edit that makes of a node one of another operator, or of exchanged operands."""
    if other.op != place.op:
        return SetOperator(place.name, other.op, dict(other.attributes))
    if "operand" in other.parameters:
        return SetAttributes(place.name, {"constant_first": bool(other.attributes.get("constant_first"))})
    return SwapInputs(place.name, 0, 1)


def _removed(step: Step, setting: ProposalSetting) -> list[Edit]:
    places = [setting.in_editor.of(node) for node in step.nodes]
    return [Remove(name) for name in dict.fromkeys(place.name for place in places if place is not None)]


# Two changes at once, of which neither helps alone.

_MOST = 4  # of either
_attributes = everywhere(attribute_proposals)


def displaced_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """What's missing put in and what's too many taken out, where they are the same operator at another place.

    A mask that's added behind the softmax in place of before it.
    """
    if not {step.op for step in setting.missing}.isdisjoint(step.op for step in setting.extra):
        yield from _both(missing_proposals(setting), extra_proposals(setting))


def attribute_and_extra_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Attributes set and what's too many taken out: padding by an operator of its own, with other numbers."""
    yield from _both(_attributes(setting), extra_proposals(setting))


def _both(first: Iterator[Proposal], second: Iterator[Proposal]) -> Iterator[Proposal]:
    others = list(islice(second, _MOST))
    for one in islice(first, _MOST if others else 0):
        yield from ((*one, *other) for other in others)


def change_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Proposals for the node that diagnosis found by computing operators with one of them changed."""
    if len(setting.region.target.nodes) <= len(setting.region.source.nodes):
        return  # nothing is written in pieces
    change = fixing_change(setting.region)
    place = None if change is None else setting.in_editor.of(change.nodes[-1])
    edit = None if change is None or place is None else _edit(place, change, setting)
    if edit is not None:
        yield (edit,)


def _edit(place: Node, change: Change, setting: ProposalSetting) -> Edit | None:
    other = change.other
    if other is None:
        return Remove(place.name)
    if change.is_missing:
        tensor = setting.in_editor.tensor(other.inputs[0])
        return None if tensor is None else Graft(tensor, (Operation(other.op, (tensor,)),))
    if change.attribute:
        return SetAttributes(place.name, {change.attribute: other.attributes[change.attribute]})
    if change.number:
        if "operand" not in place.parameters:
            return None
        held = place.parameters["operand"]
        number = np.broadcast_to(other.parameters["operand"].numpy(), held.shape)
        return SetParameter(place.name, "operand", np.array(number, np.float32))
    return _exchanged(place, other)


# Put in what only the source has: an operator behind what it reads, with its other operands; a lost join.


def missing_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Each operator that only the source has; then all of them together, where they're one behind the other."""
    known = known_tensors(setting)
    for step in setting.missing:
        yield from _behind([step], known, setting)
    if len(setting.missing) > 1:
        yield from _behind(setting.missing, known, setting)


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


# Let a rotation turn the features together that the source's does: they're put in its order, and back behind it.


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


# Give the product and the sum that stand for a normalization the numbers that it comes to.


def channelwise_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Both operands, where one node scales channels and one shifts them."""
    for ours, theirs in setting.paired:
        if {ours.op, theirs.op} != {CHANNELWISE} or len(theirs.nodes) != 2:
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


def exchange_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """What diagnosis has found: by running the piece with two tensors exchanged, or by what a product's operands are.

    Where one of them stands in another order of axes, it's exchanged where both don't yet.
    """
    graph = setting.region.target.graph
    fixing = fixing_exchange(setting.region) or exchanged_layers(setting.region)
    crossed = (Exchange(node.inputs[0], node.inputs[1], (node,)) for node, _ in crossed_products(setting.region))
    for exchange in crossed if fixing is None else (fixing,):
        for one, two, readers in _alike(exchange, graph):
            places = [setting.in_editor.of(node) for node in readers]
            names = tuple(dict.fromkeys(place.name for place in places if place is not None))
            if len(names) and None not in (*places, setting.in_editor.tensor(one), setting.in_editor.tensor(two)):
                yield (ExchangeReads(one, two, names),)


def _alike(exchange: Exchange, graph: LayerGraph) -> Iterator[tuple[str, str, list[Node]]]:
    """Two tensors of one shape, each what was moved to one of two others, the nearest first; and who reads them."""
    chains = [_moved(name, exchange.readers, graph) for name in (exchange.one, exchange.two)]
    ways = [(near + far, one, two) for near, one in enumerate(chains[0]) for far, two in enumerate(chains[1])]
    for _, (one, ours), (two, theirs) in sorted(ways, key=lambda way: way[0]):
        shape = graph.tensors[one].shape
        if shape is not None and shape == graph.tensors[two].shape:
            yield one, two, list({node.name: node for node in (*ours, *theirs)}.values())


def _moved(name: str, readers: Sequence[Node], graph: LayerGraph) -> list[tuple[str, list[Node]]]:
    """A tensor, and what it was moved from, each with who reads it on the way."""
    before = [(node.inputs[0], [node]) for node in moves_before(graph, name) if node.inputs[0]]
    return [(name, [node for node in readers if name in node.inputs]), *before]
