"""What the page draws of localizations: errors along the network, both graphs, and what was kept of layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from conrepair.application.report.encode import encode
from conrepair.application.report.page.folding import blocks_of
from conrepair.application.report.page.rendering import in_order
from conrepair.application.report.page.scattered import scatter_words
from conrepair.application.report.result import AuditResult, LocalizedStep
from conrepair.application.report.told import name_of
from conrepair.diagnosis.localization.result import LayerRow, Localization
from conrepair.diagnosis.localization.run.kept import KeptLayer
from conrepair.ground.graph.record import GraphRecord, NodeRecord


@dataclass
class Card:
    """A pair of segments: what both models compute a pair of tensors by; or a node without a counterpart.

    Attributes:
        layer: Place of the pair in the original's order; None where there's no counterpart.
        source: Nodes of the original, by name.
        target: Nodes of the converted model.
        source_after: Cards that it reads from in the original, by their place.
        target_after: The same in the converted model.
    """

    layer: int | None
    source: tuple[str, ...]
    target: tuple[str, ...]
    source_after: list[int] = field(default_factory=list)
    target_after: list[int] = field(default_factory=list)

    @property
    def after(self) -> list[int]:
        """Cards that it reads from on either side."""
        return [*self.source_after, *self.target_after]


def layers_data(step: LocalizedStep, result: AuditResult) -> dict[str, Any]:
    """All that is drawn of a step.

    Args:
        step: Of a row.
        result: That it belongs to: it has the graphs.

    Returns:
        As JSON values.
    """
    found = step.localization
    rows = in_order(found)
    graphs = {**found.graphs, **result.graphs}
    target = step.compared.build_sha256 or step.compared.target.sha256
    sides = [graphs.get(step.compared.source.sha256), graphs.get(target)]
    ours, theirs = sides
    cards = _cards(rows, ours, theirs) if ours is not None and theirs is not None else []
    return {
        "layers": [_layer(row) for row in rows],
        "cards": encode(cards),
        "blocks": encode(blocks_of(_names(cards, ours))),
        "nodes": [_nodes(graph) for graph in sides],
        "guilty": [place for place, row in enumerate(rows) if row.guilty],
        "faults": _faults(found, rows),
        "kept": _kept(found, rows),
    }


def targets_data(result: AuditResult) -> list[dict[str, Any]]:
    """Introduced errors of several targets along the source that they share; none where no source has two.

    Args:
        result: Of an audit.

    Returns:
        For each such source its name, and its targets' names with their points: place in the source, error, layer.
    """
    shared: dict[str, list[dict[str, Any]]] = {}
    for row in result.rows:
        if row.localized.steps and row.localized.steps[0].name == "conversion":
            points = [
                [layer.order, encode(layer.introduced_error), layer.source_layer]
                for layer in in_order(row.localized.steps[0].localization)
            ]
            shared.setdefault(row.reference, []).append({"label": name_of(row, result), "points": points})
    return [{"source": source, "targets": targets} for source, targets in shared.items() if len(targets) > 1]


def _layer(row: LayerRow) -> dict[str, Any]:
    value: dict[str, Any] = encode(row) | {"introduced_sqnr_db": encode(row.introduced_sqnr_db)}
    del value["source_nodes"], value["target_nodes"], value["order"]
    return value


def _faults(found: Localization, rows: Sequence[LayerRow]) -> list[dict[str, Any]]:
    """Each fault's number, and the place of the layer that it's at."""
    places = {(row.source_tensor, row.target_tensor): place for place, row in enumerate(rows)}
    return [
        {
            "layer": places.get((fault.source_tensor, fault.target_tensor)),
            "kind": str(fault.kind),
            "words": list(fault.evidence),
        }
        for fault in found.faults
    ]


def _kept(found: Localization, rows: Sequence[LayerRow]) -> dict[str, Any]:
    """What was kept of layers, by their places."""
    kept = {(item.source_tensor, item.target_tensor): item for item in found.kept}
    pairs = [(row.source_tensor, row.target_tensor) for row in rows]
    return {str(place): _told(kept[pair]) for place, pair in enumerate(pairs) if pair in kept}


def _told(kept: KeptLayer) -> dict[str, Any]:
    words = "" if kept.scatter is None else scatter_words(kept.scatter)
    return {**encode(kept), "scatter_words": words}


def _nodes(graph: GraphRecord | None) -> dict[str, Any]:
    """By name, with the shapes of what they give."""
    if graph is None:
        return {}
    return {
        node.name: encode(node) | {"shapes": [_shape(graph, name) for name in node.outputs]} for node in graph.nodes
    }


def _shape(graph: GraphRecord, tensor: str) -> str:
    known = graph.tensors.get(tensor)
    if known is None:
        return ""
    sizes = "?" if known.shape is None else ", ".join(map(str, known.shape))
    return f"{known.dtype}[{sizes}]"


def _cards(rows: Sequence[LayerRow], ours: GraphRecord, theirs: GraphRecord) -> list[Card]:
    """Pieces in the source's order, and nodes of either side without a partner where they stand in it."""
    cards = [Card(place, row.source_nodes, row.target_nodes) for place, row in enumerate(rows)]
    known = {name for card in cards for name in card.source}, {name for card in cards for name in card.target}
    cards += [Card(None, (node.name,), ()) for node in ours.nodes if node.name not in known[0]]
    cards += [Card(None, (), (node.name,)) for node in theirs.nodes if node.name not in known[1]]
    for before, after in sorted(set(_edges(ours, [card.source for card in cards]))):
        cards[after].source_after.append(before)
    for before, after in sorted(set(_edges(theirs, [card.target for card in cards]))):
        cards[after].target_after.append(before)
    return _sorted(cards)


def _names(cards: Sequence[Card], ours: GraphRecord | None) -> list[str]:
    """Of the original's layers; "" where a card has none of them."""
    known = {} if ours is None else {node.name: node.layer for node in ours.nodes}
    return [next((known[name] for name in card.source if name in known), "") for card in cards]


def _edges(graph: GraphRecord, pieces: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Which piece reads what which other one gives; a node of several pieces is the first one's."""
    place: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        for name in piece:
            place.setdefault(name, number)
    makers: Mapping[str, NodeRecord] = {tensor: node for node in graph.nodes for tensor in node.outputs}
    for node in graph.nodes:
        for tensor in node.inputs:
            maker = makers.get(tensor)
            if maker is None or maker.name not in place or node.name not in place:
                continue
            ends = place[maker.name], place[node.name]
            if ends[0] != ends[1]:
                yield ends


def _sorted(cards: list[Card]) -> list[Card]:
    """Each behind those that it reads from, as near to the given order as that allows; of a cycle, as given."""
    order: list[int] = []
    state = [0] * len(cards)
    for root in range(len(cards)):
        stack = [root]
        while stack:
            place = stack[-1]
            if state[place] == 0:
                state[place] = 1
                stack += [before for before in cards[place].after if state[before] == 0]
                continue
            stack.pop()
            if state[place] == 1:
                state[place] = 2
                order.append(place)
    new = {old: number for number, old in enumerate(order)}

    def moved(places: Sequence[int]) -> list[int]:
        return sorted(new[before] for before in places)

    return [
        replace(cards[old], source_after=moved(cards[old].source_after), target_after=moved(cards[old].target_after))
        for old in order
    ]
