"""Compare two networks by their files alone: which layers are proven to compute the same, and what differs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from conrepair.diagnosis.localization.align.alignment import comparable
from conrepair.diagnosis.localization.align.layout import Layout, layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.align.neighbourhood import Neighbourhood
from conrepair.diagnosis.localization.align.outputs import named_alike
from conrepair.diagnosis.localization.align.refinement import refined
from conrepair.diagnosis.localization.faces.differences import static_findings
from conrepair.diagnosis.localization.faces.region import Cuts, region_of
from conrepair.diagnosis.localization.result import Localization, LocatedFault
from conrepair.formats.networks.network import Network
from conrepair.ground.canonical.pieces import Cut, Pieces, Proven
from conrepair.ground.canonical.views import channels_first, channels_last
from conrepair.ground.graph.layer_graph import LayerGraph
from conrepair.ground.graph.operators import OPERATORS
from conrepair.ground.runtime.words import counted, percent
from conrepair.verdicts.evaluate.verdict import Verdict

_NOTHING = np.zeros(0)  # computed
_MOST_NAMED = 3  # layers
_PICTURE = 3  # axes


def compared_by_files(source: Network, target: Network) -> Localization:
    """Say whether two networks compute the same, whatever they're fed, and what differs where that isn't proven.

    Args:
        source: The network that is right, opened for inputs of some sizes.
        target: The other one, for the same.

    Returns:
        "equivalent" where it's proven, "undecided" elsewhere, with what differs between the files as faults.
    """
    graphs, pieces = (source.graph, target.graph), Pieces(source.graph, target.graph)
    inputs = list(_ends(source, target, source.input_names, target.input_names))
    outputs = list(_ends(source, target, source.output_names, target.output_names))
    whole = pieces.proven([cut_of(pair) for pair in inputs], [cut_of(pair) for pair in outputs])
    count = len({node.layer for node in target.graph.nodes})
    if len(outputs) == len(target.output_names) == len(source.output_names) and all(whole.ends):
        same = f"are equal up to rounding ({percent(whole.rounding)} at most)" if whole.rounding else "are all equal"
        sizes = ", ".join(str(list(pair.layout.source)) for pair in inputs)
        reason = (
            f"proven by comparing the files: all {count} layers compute the same for inputs of {sizes}, up to "
            f"rounding errors, and parameters {same}"
        )
        return Localization(verdict=Verdict.EQUIVALENT, reason=reason)
    pairs = [*inputs, *_inner(graphs, whole)]
    paired = {name for pair in pairs for name in ((0, pair.source), (1, pair.target))}
    pairs += [pair for pair in outputs if paired.isdisjoint({(0, pair.source), (1, pair.target)})]
    known, cuts = pieces.proven([cut_of(pair) for pair in pairs]), Cuts(graphs, pairs)
    left = [pair for pair in pairs if pair not in inputs and pair.target not in known.targets]
    if harmless := harmless_pairs(graphs, pieces, pairs, left):
        pairs = [pair for pair in pairs if pair.target not in harmless]
        left, cuts = [pair for pair in left if pair.target not in harmless], Cuts(graphs, pairs)
    faults = dict[str, LocatedFault]()
    for pair in left:
        faults |= {fault.words: fault for fault in _differences(graphs, pairs, pair) if fault.words not in faults}
    unproven = {node.layer for pair in left for node in cuts.sides(pair)[1].nodes}
    seen = {node.name for pair in pairs for node in cuts.sides(pair)[1].nodes}
    unproven |= {node.layer for node in target.graph.nodes if node.name not in seen}
    named = [layer for layer in dict.fromkeys(node.layer for node in target.graph.nodes) if layer in unproven]
    found = list(faults.values())
    at_fault = [layer for layer in named if any(layer in fault.target_layers for fault in found)]
    named = [layer for layer in named if layer not in at_fault]
    words = ", ".join(named[:_MOST_NAMED]) + (", ..." if len(named) > _MOST_NAMED else "")
    reasons = []
    if at_fault:
        differ = f"{len(at_fault)} of {counted(count, 'layer')} {'differs' if len(at_fault) == 1 else 'differ'}"
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        reasons.append(f"{differ} in the files: {found[0].words}{more}; only a run tells whether outputs do, too")
    if named:
        are = "is" if len(named) == 1 else "are"
        reasons.append(f"can't tell from the files whether {len(named)} of {count} layers {are} the same ({words})")
    reasons += [
        f"only the {whose} has the output `{name}`"
        for role, whose, network in (("source", "original", source), ("target", "converted model", target))
        for name, tensor in network.output_names.items()
        if tensor not in {getattr(pair, role) for pair in outputs}
    ]
    reason = ", and ".join(reasons) or "can't tell from the files whether the outputs are the same"
    return Localization(verdict=Verdict.UNDECIDED, reason=reason, faults=tuple(faults.values()))


def cut_of(pair: Pair) -> Cut:
    """A pair's layout first, then others that its shapes allow."""
    ways = dict.fromkeys((pair.layout, *layouts(pair.layout.source, pair.layout.target)))
    return Cut(pair.source, pair.target, [(way.view, way.axes, way.target) for way in ways])


def _ends(source: Network, target: Network, ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[Pair]:
    """Inputs, or outputs, of both: as they lie, or with the channels where the target's format has them."""
    for name, other in named_alike(list(ours), list(theirs)):
        one, two = source.graph.tensors[ours[name]].shape or (), target.graph.tensors[theirs[other]].shape or ()
        layout = Layout(one, one, tuple(range(len(one))), one)
        order = channels_first(len(one)) if source.channels == "last" else channels_last(len(one))
        moved = {source.channels, target.channels} == {"first", "last"} and len(one) >= _PICTURE and one != two
        if moved and tuple(one[axis] for axis in order) == two:
            layout = Layout(one, one, order, two)
        yield Pair(ours[name], theirs[other], layout, 1.0, "their names")


def _inner(graphs: tuple[LayerGraph, LayerGraph], whole: Proven) -> Iterator[Pair]:
    """Tensors that stand for one another: that are the same by the files, or by what surrounds them."""
    names = [tuple(name for name in comparable(graph) if graph.tensors[name].shape is not None) for graph in graphs]
    shapes = [{name: graph.tensors[name].shape or () for name in graph.tensors} for graph in graphs]
    nodes = [Neighbourhood(*item) for item in zip(graphs, names, shapes, strict=True)]
    equal = {
        (nodes[0].place[one], nodes[1].place[two])
        for two, one in whole.same.items()
        if one in nodes[0].place and two in nodes[1].place
    }

    def fits(row: int, column: int) -> bool:
        alike = nodes[0].results[row] == nodes[1].results[column]
        return bool(alike) and bool(layouts(shapes[0][names[0][row]], shapes[1][names[1][column]]))

    for (row, column), words in refined(nodes[0], nodes[1], equal, fits):
        one, two = names[0][row], names[1][column]
        found = layouts(shapes[0][one], shapes[1][two])
        if found and one not in graphs[0].inputs and two not in graphs[1].inputs:
            yield Pair(one, two, found[0], 1.0, words)


def harmless_pairs(
    graphs: tuple[LayerGraph, LayerGraph], pieces: Pieces, pairs: Sequence[Pair], left: Sequence[Pair]
) -> set[str]:
    """Of pairs that aren't proven those, by the target's tensors, without which all that reads them is: no pairs.

    A factor that one side has in the weights, and the other one behind them.
    """
    cuts, open_ones = Cuts(graphs, pairs), {pair.target for pair in left}
    kept = [pair for pair in pairs if pair.target not in open_ones]
    known = pieces.proven([cut_of(pair) for pair in kept]).targets
    wrong = open_ones.intersection(graphs[1].outputs)
    for pair in reversed(pairs):
        if pair.target in wrong or (pair.target not in open_ones and pair.target not in known):
            wrong |= open_ones.intersection(cuts.sides(pair)[1].begins)
    return open_ones - wrong


def _differences(graphs: tuple[LayerGraph, LayerGraph], pairs: Sequence[Pair], end: Pair) -> Iterator[LocatedFault]:
    """What differs for sure between the pieces that end at a pair."""
    region = region_of(graphs, pairs, end, _NOTHING, _NOTHING, lambda _: _NOTHING, {})
    known = {node.layer for node in region.target.nodes if node.op in OPERATORS}
    found = [item for item in static_findings(region) if item.is_certain]
    # Each format has operators of its own, which nothing but names tells apart.
    for item in [item for item in found if known.intersection(item.target_layers)] or found:
        source, target = (end.source, item.source_layers), (end.target, item.target_layers)
        fault = LocatedFault.of_error(item.kind, source, target, (item.words,), 0.0)
        yield dataclasses.replace(fault, confidence=item.weight)
