"""Find which tensors of two networks stand for one another, through faults: match, feed, look again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conrepair.graph.layer_graph import Array, LayerGraph
from conrepair.localize.activations import Activations
from conrepair.localize.evidence import Evidence
from conrepair.localize.isolation import Isolation, add_result
from conrepair.localize.layout import layouts
from conrepair.localize.matching import EQUAL, EXACT, Pair
from conrepair.localize.neighbourhood import Neighbourhood
from conrepair.localize.outputs import output_pairs
from conrepair.localize.proving import prove
from conrepair.localize.quantized_pairs import likeness_of, near_pairs_of
from conrepair.localize.samples import Samples
from conrepair.localize.shelf import Shelf
from conrepair.localize.similarity import NEAREST, Similarity
from conrepair.localize.structure import Structure
from conrepair.metrics.running_error import RunningError

__all__ = ["Alignment", "align", "comparable"]

_HARMLESS = 1e-4  # of a tensor's error that what's computed from it has left: no layer forgives that much
_TRIALS = 40
_MOVES = 5  # of a doubtful pair to other tensors, before it's dropped


@dataclass(frozen=True)
class Alignment:
    """The tensors that two networks have in common.

    Attributes:
        pairs: In the target's order; the first ones may be inputs.
        outputs: Outputs of both models that aren't pairs: the target gives something else there.
        sources: The source's tensors that were compared, in its order.
        targets: The same of the target.
    """

    pairs: tuple[Pair, ...]
    outputs: tuple[Pair, ...]
    sources: tuple[str, ...]
    targets: tuple[str, ...]

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
    source.compute(ours)
    target.compute(theirs)
    shapes = source.shapes(), target.shapes()
    nodes = Neighbourhood(graphs[0], ours, shapes[0]), Neighbourhood(graphs[1], theirs, shapes[1])
    structure = Structure(*nodes)
    samples = Samples(ours, source.__getitem__), Samples(theirs, target.__getitem__)
    similarity = Similarity(*samples, NEAREST if quantized else EQUAL, hidden=not quantized)
    similarity.refine(EQUAL)
    errors = dict(zip(theirs, similarity.closest().tolist(), strict=True))
    likeness = likeness_of(source.network, target.network, similarity, nodes) if quantized else EXACT
    evidence = Evidence(*nodes, similarity, structure, source.__getitem__, likeness)
    isolated = _Isolated(source, target, folder)
    kept = prove(evidence, isolated.run)
    if quantized:
        kept = near_pairs_of(evidence.match(), similarity, nodes)
    else:
        # Where the target computes the source's values everywhere, feeding them shows nothing else.
        if any(pair.confidence < 1.0 or errors[pair.target] >= EQUAL for pair in kept):
            guessed = [pair.target for pair in kept if pair.confidence < 1.0 and errors[pair.target] >= EQUAL]
            far = similarity.far_errors([nodes[1].place[name] for name in guessed])
            errors |= dict(zip(guessed, far, strict=True))
            kept = _settled(nodes, _without_harmless(graphs[1], kept, errors), isolated)
    outputs = output_pairs(source.network, target.network, kept, shapes)
    return Alignment(tuple(kept), tuple(outputs), ours, theirs)


def comparable(graph: LayerGraph) -> tuple[str, ...]:
    """The tensors that can be compared: observable, of real numbers, no copies of others; in the graph's order."""
    return tuple(
        name
        for name in graph.order
        if graph.tensors[name].observable and graph.tensors[name].is_real and not _is_copy(graph, name)
    )


def _is_copy(graph: LayerGraph, name: str) -> bool:
    node = graph.producers.get(name)
    return node is not None and node.op == "Identity" and bool(node.inputs[0]) and name not in graph.outputs


def _without_harmless(graph: LayerGraph, pairs: Sequence[Pair], errors: Mapping[str, float]) -> list[Pair]:
    """Leave out pairs of different values from which nothing but the right values is computed: they aren't one.

    Args:
        graph: The target's.
        pairs: From the matching.
        errors: Of each compared tensor of the target against the closest of the source's, in the full run.
    """
    # Of what's computed from each tensor, the largest error of the next tensors whose error is known.
    worst = dict.fromkeys(graph.outputs, 0.0)
    for node in reversed(graph.nodes):
        behind = max((errors.get(name, worst.get(name, 0.0)) for name in node.outputs), default=0.0)
        for name in filter(None, node.inputs):
            worst[name] = max(worst.get(name, 0.0), behind)
    return [
        pair
        for pair in pairs
        if pair.confidence == 1.0
        or pair.target in graph.outputs
        or worst.get(pair.target, math.inf) > min(EQUAL, _HARMLESS * errors.get(pair.target, 0.0))
    ]


class _Isolated:
    """Runs of the target with the source's activations, on one batch."""

    def __init__(self, source: Activations, target: Activations, folder: Path) -> None:
        self._source, self._target, self._feeds = source, target.network, target.feeds
        self._shelf = Shelf(folder / "isolated")
        self._shelf.put_all(target.feeds.items())

    def run(self, pairs: Sequence[Pair], names: Sequence[str]) -> Callable[[str], Array]:
        """Tensors, computed from the nearest pairs."""
        isolation = Isolation(self._target, pairs, names)
        self._shelf.put_all(isolation.run(self._source.__getitem__, self._feeds))
        return self._shelf.__getitem__

    def errors(self, pairs: Sequence[Pair], wanted: Sequence[Pair]) -> dict[str, float]:
        """Introduced errors of some pairs, by their targets' names."""
        inputs = set(self._target.graph.inputs)
        chosen = {pair.target: pair for pair in wanted if pair.target not in inputs}
        found = {}
        for name, array in Isolation(self._target, pairs, list(chosen)).run(self._source.__getitem__, self._feeds):
            error, pair = RunningError(), chosen[name]
            add_result(error, pair, self._source[pair.source], array)
            found[name] = error.error
        return found


def _settled(nodes: tuple[Neighbourhood, Neighbourhood], pairs: Sequence[Pair], isolated: _Isolated) -> list[Pair]:
    """Move or drop pairs that make wrong what reads them, and without which that's right."""
    kept = list(pairs)
    errors = isolated.errors(kept, kept)
    tried: Counter[str] = Counter()
    for _ in range(_TRIALS):
        doubtful = _doubtful(nodes[1].graph, kept, errors, {name for name, count in tried.items() if count > _MOVES})
        if not doubtful:
            break
        changed = _tried(kept, doubtful, errors, isolated, _alternatives(nodes, kept, doubtful, tried))
        tried.update(doubtful.keys())
        if changed != kept:
            kept = changed
            errors = isolated.errors(kept, kept)
    return [
        pair
        if pair.confidence == 1.0 or errors.get(pair.target, 1.0) > EQUAL
        else replace(pair, confidence=1.0, evidence=f"{pair.evidence}; the same values from the cut before")
        for pair in kept
    ]


def _tried(
    pairs: Sequence[Pair],
    doubtful: Mapping[str, Sequence[str]],
    errors: Mapping[str, float],
    isolated: _Isolated,
    moved: Mapping[str, Pair | None],
) -> list[Pair]:
    """The pairs, of which those are moved (or dropped, for None) that make what reads them right."""
    other = [moved.get(pair.target, pair) for pair in pairs]
    rest = _distinct([pair for pair in other if pair is not None])
    behind = {name for target in moved for name in doubtful[target]}
    found = isolated.errors(rest, [pair for pair in rest if pair.target in behind])
    better = {target for target in moved if all(found.get(name, math.inf) <= EQUAL for name in doubtful[target])}
    changed = [moved[pair.target] if pair.target in better else pair for pair in pairs]
    return _distinct([pair for pair in changed if pair is not None])


def _distinct(pairs: Sequence[Pair]) -> list[Pair]:
    """No tensor of the target twice: neighbours may have moved to the same one."""
    return list({pair.target: pair for pair in reversed(pairs)}.values())[::-1]


def _alternatives(
    nodes: tuple[Neighbourhood, Neighbourhood],
    pairs: Sequence[Pair],
    doubtful: Mapping[str, Sequence[str]],
    tried: Mapping[str, int],
) -> dict[str, Pair | None]:
    """For each doubtful pair the next possibility: tensors of either side just behind or before; then none at all."""
    taken = {pair.source for pair in pairs}, {pair.target for pair in pairs}
    found: dict[str, Pair | None] = {}
    for pair in pairs:
        if pair.target in doubtful:
            moves = [
                *((name, pair.target) for name in nodes[0].around(pair.source) if name not in taken[0]),
                *((pair.source, name) for name in nodes[1].around(pair.target) if name not in taken[1]),
            ]
            shapes = [(nodes[0].shape(one), nodes[1].shape(two)) for one, two in moves]
            fitting = [move for move, shape in zip(moves, shapes, strict=True) if layouts(*shape)]
            place = tried[pair.target]
            found[pair.target] = _moved(nodes, pair, *fitting[place]) if place < min(len(fitting), _MOVES) else None
    return found


def _moved(nodes: tuple[Neighbourhood, Neighbourhood], pair: Pair, source: str, target: str) -> Pair:
    choices = layouts(nodes[0].shape(source), nodes[1].shape(target))
    layout = next((item for item in choices if item.axes == pair.layout.axes), choices[0])
    return replace(pair, source=source, target=target, layout=layout, evidence="what reads it comes out right")


def _doubtful(
    graph: LayerGraph, pairs: Sequence[Pair], errors: Mapping[str, float], cleared: set[str]
) -> dict[str, list[str]]:
    """Pairs that differ and whose readers differ, no two of them neighbours; each with its readers."""
    names = {pair.target for pair in pairs}
    feeding = graph.feeding(names | set(graph.inputs))
    readers: dict[str, list[str]] = {}
    for name in names:
        for fed in feeding.get(name, ()):
            readers.setdefault(fed, []).append(name)
    found: dict[str, list[str]] = {}
    blocked: set[str] = set()
    for pair in pairs:
        name = pair.target
        behind = readers.get(name, [])
        if errors.get(name, 0.0) <= EQUAL or name in blocked | cleared or not behind or name in graph.outputs:
            continue
        if any(errors[item] > EQUAL for item in behind):
            found[name] = behind
            blocked.update(behind)
    return found
