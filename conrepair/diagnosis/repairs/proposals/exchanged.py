"""Let a piece read two tensors in each other's place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from conrepair.diagnosis.localization.faces.changes import Exchange
from conrepair.diagnosis.localization.faces.exchanged_tensors import (
    crossed_products,
    exchanged_layers,
    fixing_exchange,
)
from conrepair.diagnosis.localization.faces.recurrent.rotary import OtherForm, other_forms
from conrepair.diagnosis.localization.faces.steps.folding import CHANNELWISE
from conrepair.diagnosis.localization.faces.steps.steps import moves_before
from conrepair.diagnosis.repairs.edits import ExchangeReads, Graft
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, ProposalSetting, set_to
from conrepair.formats.editing.operation import Operation
from conrepair.ground.graph.layer_graph import LayerGraph, Node

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
