"""Two layers of one tensor that have each other's weights: each gives what the other one should.

So all that they compute has a partner, crosswise, and only what reads them is wrong: up to where both come together,
which is right with each result in the other's place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localization.diagnosis.changes import exchanged_pieces
from conrepair.localization.diagnosis.exchanged_cuts import Exchange, comes_out_right
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.region import Region, error_in

__all__ = ["exchanged_layer_findings", "exchanged_layers"]

_LAYERS = frozenset({"MatMul", "Conv", "ConvTranspose"})
_FAR = 16  # operators between the layers and a piece, or between them and where both come together
_ENDS = 4  # tensors that are looked at there
_MOST = 6  # pairs of layers that are tried: all of four


def exchanged_layer_findings(region: Region) -> Iterator[Finding]:
    """The exchange that fixes what reads both, in words."""
    exchange = exchanged_layers(region)
    if exchange is None:
        return
    producers = region.target.graph.producers
    layers = tuple(producers[name].layer for name in (exchange.one, exchange.two))
    partners = (region.partners.get(name, region.source.end) for name in (exchange.two, exchange.one))
    sources = [region.source.graph.producers.get(name) for name in partners]
    words = (
        f"the weights of `{layers[0]}` and `{layers[1]}` are exchanged: with each result in the other's place, "
        "what reads both is the source's"
    )
    ours = tuple(node.layer for node in sources if node is not None)
    rule = "the weights of two layers are exchanged"
    yield Finding(Kind.PARAMETERS, words, ours, layers, f"exchanged {layers}", rule=rule)


def exchanged_layers(region: Region) -> Exchange | None:
    """Find two layers that read the same tensor, or lie in the piece, and give each what the other one should.

    Args:
        region: Guilty: between them and where both come together.
    """
    graph = region.target.graph
    for one, two in itertools.islice(_siblings(region), _MOST):
        names = (one.outputs[0], two.outputs[0])
        behind = _behind(graph, names)
        own = [node for node in behind if {*names} & {*node.inputs}]
        if not any(node.outputs[0] == region.target.end for node in behind):
            continue
        uncut = {name for node in behind for name in node.outputs}
        if any(_comes_right(region, names, end, uncut) for end in _ends(region, names, behind)):
            return Exchange(*names, tuple(own))
    return exchanged_pieces(region)


def _siblings(region: Region) -> Iterator[tuple[Node, Node]]:
    """Layers of the same tensor in front of a piece, whose results could stand for one another."""
    graph = region.target.graph
    before = list(itertools.islice(graph.nearest([region.target.end]), _FAR))
    readers = dict.fromkeys(name for node in before if node.op in _LAYERS for name in node.inputs)
    for name in readers:
        layers = [node for node in graph.consumers.get(name, ()) if _is_layer(node, region)]
        for one, two in itertools.combinations(layers, 2):
            layouts = [region.layouts[node.outputs[0]] for node in (one, two)]
            if layouts[0] == layouts[1] and (one in before or two in before):
                yield one, two


def _is_layer(node: Node, region: Region) -> bool:
    return node.op in _LAYERS and "weight" in node.parameters and node.outputs[0] in region.layouts


def _behind(graph: LayerGraph, names: Sequence[str]) -> list[Node]:
    """The nearest of what's computed from tensors, in the graph's order."""
    found = itertools.islice(graph.nearest(names, forward=True), 2 * _FAR)
    return sorted(found, key=lambda node: graph.order[node.outputs[0]])


def _ends(region: Region, names: Sequence[str], behind: Sequence[Node]) -> Iterator[str]:
    """Known tensors that both results come together in, from the piece's end on."""
    graph = region.target.graph
    reached = {name: {name} for name in names}
    found = []
    for node in behind:
        origins = set[str]().union(*(reached.get(name, set()) for name in node.inputs))
        reached |= dict.fromkeys(node.outputs, origins)
        name = node.outputs[0]
        later = graph.order[name] >= graph.order[region.target.end]
        if len(origins) == len(names) and name in region.partners and later:
            found.append(name)
    yield from found[:_ENDS]


def _comes_right(region: Region, names: tuple[str, str], end: str, uncut: set[str]) -> bool:
    expected, layout = region.value(region.partners[end]), region.layouts[end]
    if expected is None:
        return False
    error = error_in(layout, expected, region.trial(end, region.fed, uncut))
    return math.isfinite(error) and comes_out_right(region, names, end, (layout, expected, error), uncut)
