"""Find which tensors of two networks stand for one another, through faults: match, feed, look again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from conrepair.graph.layer_graph import LayerGraph
from conrepair.localization.activations import Activations
from conrepair.localization.evidence import Evidence
from conrepair.localization.isolated import Isolated
from conrepair.localization.layout import layouts
from conrepair.localization.matching import EQUAL, EXACT, Pair
from conrepair.localization.neighbourhood import Neighbourhood
from conrepair.localization.outputs import output_pairs
from conrepair.localization.proving import prove
from conrepair.localization.quantized_pairs import likeness_of, near_pairs_of
from conrepair.localization.samples import Samples
from conrepair.localization.settling import settle
from conrepair.localization.similarity import NEAREST, Similarity
from conrepair.localization.structure import Structure

__all__ = ["Alignment", "align", "comparable"]

_HARMLESS = 1e-4  # of a tensor's error that what's computed from it has left: no layer forgives that much


@dataclass(frozen=True)
class Alignment:
    """The tensors that two networks have in common.

    Attributes:
        pairs: In the target's order; the first ones may be inputs.
        outputs: Outputs of both models that aren't pairs: the target gives something else there.
        sources: The source's tensors that were compared, in its order.
        targets: The same of the target.
        whole: Inputs of whole numbers that are fed the same ones: nobody compares them, but both read them.
    """

    pairs: tuple[Pair, ...]
    outputs: tuple[Pair, ...]
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    whole: tuple[Pair, ...] = ()

    @property
    def cuts(self) -> tuple[Pair, ...]:
        """All tensors that both are known to have in common."""
        return (*self.pairs, *self.whole)

    @property
    def unpaired_sources(self) -> tuple[str, ...]:
        """Tensors of the source that the target doesn't have, or that weren't recognised."""
        paired = {pair.source for pair in self.pairs}
        return tuple(name for name in self.sources if name not in paired)

    @property
    def unpaired_targets(self) -> tuple[str, ...]:
        """The same the other way round."""
        paired = {pair.target for pair in self.pairs}
        return tuple(name for name in self.targets if name not in paired)


def align(source: Activations, target: Activations, folder: Path, *, quantized: bool = False) -> Alignment:
    """Align two networks.

    Tensors with the same values are the same; behind a fault no values are. There, what structure says is proven by
    feeding (`proving.prove`). Where that leaves guesses, a pair that makes what follows wrong, and without which
    it's right, is moved or dropped.

    Args:
        source: One batch through the network that is right.
        target: The same batch through the network in question.
        folder: For activations; the caller removes it.
        quantized: Whether the target's values are never quite the source's, so that nothing can be proven by them.
    """
    graphs = source.network.graph, target.network.graph
    ours, theirs = map(comparable, graphs)
    for side, names in ((source, ours), (target, theirs)):
        results = side.network.output_names.values()
        side.compute([*names, *(name for name in results if name not in side.network.graph.inputs)])
    shapes = source.shapes(), target.shapes()
    nodes = Neighbourhood(graphs[0], ours, shapes[0]), Neighbourhood(graphs[1], theirs, shapes[1])
    structure = Structure(*nodes)
    samples = Samples(ours, source.__getitem__), Samples(theirs, target.__getitem__)
    similarity = Similarity(*samples, NEAREST if quantized else EQUAL, hidden=not quantized)
    similarity.refine(EQUAL)
    errors = dict(zip(theirs, similarity.closest().tolist(), strict=True))
    likeness = likeness_of(source.network, target.network, similarity, nodes) if quantized else EXACT
    evidence = Evidence(*nodes, similarity, structure, likeness, expected=source.__getitem__)
    isolated = Isolated(source, target, folder)
    kept = prove(evidence, isolated.run)
    if quantized:
        kept = near_pairs_of(evidence.match(), similarity, nodes)
    else:
        # Where the target computes the source's values everywhere, feeding them shows nothing else.
        if any(pair.confidence < 1.0 or errors[pair.target] >= EQUAL for pair in kept):
            kept = settle(nodes, _without_harmless(nodes[1], kept, errors, similarity), isolated)
    outputs = output_pairs(source.network, target.network, kept, shapes)
    return Alignment(tuple(kept), tuple(outputs), ours, theirs, tuple(_whole_inputs(source, target)))


def _whole_inputs(source: Activations, target: Activations) -> Iterator[Pair]:
    """Inputs of whole numbers that hold the same; of several, that of the same name, or at the same place."""
    sides = [
        [name for name in side.network.graph.inputs if not side.network.graph.tensors[name].is_real]
        for side in (source, target)
    ]
    left = list(sides[0])
    for place, theirs in enumerate(sides[1]):
        same = [ours for ours in left if np.array_equal(source[ours], target[theirs])]
        if same:
            ours = min(same, key=lambda name: (name != theirs, sides[0].index(name) != place))
            left.remove(ours)
            shape = source[ours].shape
            yield Pair(ours, theirs, layouts(shape, shape)[0], 1.0, "it's fed the same numbers")


def comparable(graph: LayerGraph) -> tuple[str, ...]:
    """The tensors that can be compared: observable, of real numbers, no copies of others; in the graph's order."""
    return tuple(
        name
        for name in graph.order
        if graph.tensors[name].observable and graph.tensors[name].is_real and not _is_copy(graph, name)
    )


def _is_copy(graph: LayerGraph, name: str) -> bool:
    node = graph.producers.get(name)
    return node is not None and node.is_copy and name not in graph.outputs


def _without_harmless(
    nodes: Neighbourhood, pairs: Sequence[Pair], errors: Mapping[str, float], similarity: Similarity
) -> list[Pair]:
    """Leave out pairs of different values from which nothing but the right values is computed: they aren't one.

    Args:
        nodes: The target's tensors.
        pairs: From the matching.
        errors: Of each of them against the closest of the source's, in the full run; infinite where none is near.
        similarity: Tells that error where it's wanted.
    """
    # Of what's computed from each tensor, the largest error of the next tensors whose error is known.
    worst = dict.fromkeys(nodes.graph.outputs, 0.0)
    for node in reversed(nodes.graph.nodes):
        behind = max((errors.get(name, worst.get(name, 0.0)) for name in node.outputs), default=0.0)
        for name in filter(None, node.inputs):
            worst[name] = max(worst.get(name, 0.0), behind)
    doubtful = [
        pair.target
        for pair in pairs
        if pair.confidence < 1.0
        and pair.target not in nodes.graph.outputs
        and worst.get(pair.target, math.inf) <= EQUAL
    ]
    far = [name for name in doubtful if math.isinf(errors[name])]
    known = dict(errors) | dict(zip(far, similarity.far_errors([nodes.place[name] for name in far]), strict=True))
    harmless = {name for name in doubtful if worst[name] <= _HARMLESS * known[name]}
    return [pair for pair in pairs if pair.target not in harmless]
