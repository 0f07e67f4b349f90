"""Find which tensors of two networks stand for one another, through faults: match, feed, look again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from conrepair.diagnosis.localization.align.compensating import Isolated
from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import ComparedNetworks, Likeness, Pair, match
from conrepair.diagnosis.localization.align.neighbourhood import Neighbourhood
from conrepair.diagnosis.localization.align.outputs import output_pairs
from conrepair.diagnosis.localization.align.quantized_pairs import likeness_of, near_pairs_of
from conrepair.diagnosis.localization.align.samples import Samples
from conrepair.diagnosis.localization.align.settling import confirmed, settle
from conrepair.diagnosis.localization.align.similarity import NEAREST, Similarity
from conrepair.diagnosis.localization.numbers import pairing
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.ground.graph.layer_graph import LayerGraph

_LOOKS = 3  # at what feeding shows, each behind what the one before it has shown


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
        """Tensors of the target that are in no pair."""
        paired = {pair.target for pair in self.pairs}
        return tuple(name for name in self.targets if name not in paired)


def align(source: Activations, target: Activations, folder: Path, *, quantized: bool = False) -> Alignment:
    """Align two networks.

    Tensors with the same values are the same; behind a fault no values are. There, structure says what is: colour
    refinement of both graphs (`refinement.refined`). What it says is checked by feeding the source's values there:
    what then comes out right is known by its values again, and a pair that makes what follows wrong, and without
    which it's right, is moved or dropped.

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
    samples = Samples(ours, source.__getitem__), Samples(theirs, target.__getitem__)
    similarity = Similarity(*samples, NEAREST if quantized else pairing.EQUAL, hidden=not quantized)
    similarity.refine(pairing.EQUAL)
    likeness = likeness_of(source.network, target.network, similarity, nodes) if quantized else Likeness()
    sides = ComparedNetworks(*nodes, similarity, likeness)
    isolated = Isolated(source, target, folder)
    kept = match(sides)
    errors = {pair.target: _error(sides, pair) for pair in kept if pair.confidence == 1.0}  # with nothing fed
    for _ in range(_LOOKS):
        if not _shown_by_feeding(sides, kept, isolated):
            break
        kept = match(sides)
    if quantized:
        if any(pair.confidence < 1.0 for pair in kept):
            kept = confirmed(graphs[1], kept, isolated.errors(kept, kept), likeness.error)
        kept = near_pairs_of(kept, similarity, nodes)
    elif any(pair.confidence < 1.0 for pair in kept):
        # Where the target computes the source's values everywhere, feeding them shows nothing else.
        kept = settle(nodes, _without_harmless(sides, kept, errors), isolated)
    outputs = output_pairs(source.network, target.network, kept, shapes)
    return Alignment(tuple(kept), tuple(outputs), ours, theirs, tuple(_whole_inputs(source, target)))


def _shown_by_feeding(sides: ComparedNetworks, pairs: Sequence[Pair], isolated: Isolated) -> bool:
    """Compute what isn't known by its values from the pairs before it; whether more values are the source's then.

    Only what depends on weights behind the pairs, or on what's known besides, tells: a row of functions computes the
    right values from any tensor that's taken for the right one.
    """
    target, known = sides.target, {pair.target for pair in pairs if pair.confidence == 1.0}
    fed = {pair.target for pair in pairs}
    telling = _telling(target.graph, fed | set(target.graph.inputs))
    names = [name for name in target.names if name in telling and name not in known]
    if len(fed) == len(known) or not names:
        return False
    before = sides.similarity.equal(sides.likeness.error)
    columns = np.array([target.place[name] for name in names], np.int64)
    found = sides.similarity.again(Samples(names, isolated.run(pairs, names)))
    sides.similarity.improve(found, columns)
    return sides.similarity.equal(sides.likeness.error) > before


def _without_harmless(sides: ComparedNetworks, pairs: Sequence[Pair], errors: Mapping[str, float]) -> list[Pair]:
    """Leave out guesses of different values from which nothing but the right values is computed: they're no pair.

    Args:
        sides: The networks.
        pairs: From the matching.
        errors: Of the pairs that values showed, in the full run.
    """
    graph = sides.target.graph
    right = all(errors.get(name, math.inf) <= pairing.EQUAL for name in graph.outputs)
    # Of what's computed from each tensor, the largest error of the next compared ones. One that isn't known is none
    # of these where all outputs are right; else what hides an error from the next one may show it later.
    worst = {name: errors.get(name, math.inf) for name in graph.outputs}
    for node in reversed(graph.nodes):
        unknown = {name: math.inf if name in sides.target.place and not right else 0.0 for name in node.outputs}
        behind = max((errors.get(name, max(worst.get(name, 0.0), one)) for name, one in unknown.items()), default=0.0)
        for name in filter(None, node.inputs):
            worst[name] = max(worst.get(name, 0.0), behind)
    return [pair for pair in pairs if pair.confidence == 1.0 or not _is_harmless(sides, pair, worst)]


def _is_harmless(sides: ComparedNetworks, pair: Pair, worst: Mapping[str, float]) -> bool:
    left = worst.get(pair.target, 0.0)  # nobody reads what isn't there
    if pair.target in sides.target.graph.outputs or left > pairing.EQUAL:
        return False
    return left <= pairing.HARMLESS * _error(sides, pair)


def _error(sides: ComparedNetworks, pair: Pair) -> float:
    return sides.similarity.error(sides.source.place[pair.source], sides.target.place[pair.target])


def _telling(graph: LayerGraph, fed: Set[str]) -> set[str]:
    """The tensors whose values depend on weights behind what's fed: others would have given other values."""
    found: set[str] = set()
    for node in graph.nodes:
        own = any(math.prod(parameter.shape) > 1 for parameter in node.parameters.values())
        if own or any(name in found and name not in fed for name in node.inputs):
            found.update(node.outputs)
    return found


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
