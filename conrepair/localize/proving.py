"""Prove pairs of tensors behind faults, where no values are the same: feed guesses, and see what comes out right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.graph.layer_graph import Array, LayerGraph, Node
from conrepair.localize.layout import Layout
from conrepair.localize.matching import EQUAL, LEAST, Pair, match
from conrepair.localize.similarity import Matrix, Similarity, compare_values
from conrepair.localize.structure import Neighbourhood, Structure

__all__ = ["Evidence", "prove"]

_ROUNDS = 48
_IDLE = 5  # rounds of other guesses that show nothing, after which nothing more is expected
_SHAKEN = 0.05  # of a score, for each of them
_LEAST_INSIDE = 0.1  # of a score from 0 to 1, where few are possible
_SEED = 20261120

Fetch = Callable[[str], Array]
Compute = Callable[[Sequence[Pair], Sequence[str]], Fetch]


@dataclass(frozen=True)
class Evidence:
    """What two networks are compared by.

    Attributes:
        source: Tensors down.
        target: Tensors across.
        similarity: Of values; grows.
        structure: Of the graphs.
        expected: Gives the source's values.
    """

    source: Neighbourhood
    target: Neighbourhood
    similarity: Similarity
    structure: Structure
    expected: Fetch

    def match(self, shaken: Matrix | float = 0.0, least: float = LEAST) -> list[Pair]:
        """The pairs that are likeliest by what's known."""
        return match(self.source, self.target, self.similarity, self.structure, shaken=shaken, least=least)


def prove(evidence: Evidence, compute: Compute) -> list[Pair]:
    """Pair tensors, those behind faults by what is computed from them.

    Values show which tensors are the same up to a fault, and behind it no longer. There, structure guesses. A guess
    is proven by feeding the source's values to the target in its place: when an output, a layer with weights, or one
    that also reads what's known, then gives what the source has, it was right, and everything up to the next fault
    is known by its values again. So each round feeds the guesses that nothing else unknown lies before; one that
    shows nothing isn't made again.

    Args:
        evidence: What's known; grows.
        compute: Feeds pairs, and gives the target's values of some tensors, computed from the nearest pairs before.

    Returns:
        In the target's order. Where all outputs are explained, only what's proven; otherwise guesses, too: those have
        a confidence below 1.
    """
    trials = _Trials(evidence, compute)
    trials.run(least=LEAST, inside=False)
    if not trials.explained:
        return evidence.match()
    trials.run(least=_LEAST_INSIDE, inside=True)
    return [pair for pair in evidence.match() if pair.confidence == 1.0]


class _Trials:
    """Rounds of guesses."""

    def __init__(self, evidence: Evidence, compute: Compute) -> None:
        self._evidence, self._compute = evidence, compute
        self._tried: set[tuple[str, str, Layout]] = set()
        self._generator = np.random.default_rng(_SEED)

    @property
    def explained(self) -> bool:
        """Whether every output of the target comes out right from what's known."""
        target = self._evidence.target
        settled = {pair.target for pair in self._evidence.match() if pair.confidence == 1.0}
        return settled.issuperset(set(target.names).intersection(target.graph.outputs))

    def run(self, *, least: float, inside: bool) -> None:
        """Try until outputs are explained, or until nothing new is seen.

        Args:
            least: Score of a guess.
            inside: Whether to guess between what's known and the tensors behind faults that were proven, so that
                less lies between them, instead of behind what's known.
        """
        evidence, idle = self._evidence, 0
        for _ in range(_ROUNDS):
            if not inside and self.explained:
                return
            known = [pair for pair in evidence.match() if pair.confidence == 1.0]
            guesses = self._guesses(known, _SHAKEN * idle, least)
            wanted = self._wanted(known, inside=inside)
            if inside:
                guesses = self._before(guesses, known, wanted)
            first = _first(evidence.target.graph, {pair.target for pair in known}, guesses)
            self._tried.update(map(_key, first))
            if not first:
                idle += 1
                if inside or idle > _IDLE:
                    return
            elif _learn(evidence, [*known, *first], wanted, self._compute([*known, *first], wanted)):
                idle = 0

    def _guesses(self, known: Sequence[Pair], shaken: float, least: float) -> list[Pair]:
        """Pairs that were not tried, of tensors that aren't known."""
        noise = self._generator.normal(0, shaken, self._evidence.similarity.error.shape)
        ours, theirs = ({getattr(pair, side) for pair in known} for side in ("source", "target"))
        return [
            pair
            for pair in self._evidence.match(noise, least)
            if pair.source not in ours and pair.target not in theirs and _key(pair) not in self._tried
        ]

    def _wanted(self, known: Sequence[Pair], *, inside: bool) -> list[str]:
        """The tensors that guesses are judged by."""
        settled, names = {pair.target for pair in known}, self._evidence.target.names
        if inside:
            similarity = self._evidence.similarity
            wrong = similarity.proven & (similarity.error >= EQUAL)
            return [name for place, name in enumerate(names) if wrong[:, place].any()]
        return [name for name in names if name not in settled]

    def _before(self, guesses: Sequence[Pair], known: Sequence[Pair], ends: Sequence[str]) -> list[Pair]:
        """The guesses between what's known and some tensors, on both sides."""
        partner = {pair.target: pair.source for pair in known}
        ours = _between(self._evidence.source.graph, partner.values(), [partner[name] for name in ends])
        theirs = _between(self._evidence.target.graph, partner, ends)
        return [pair for pair in guesses if pair.source in ours and pair.target in theirs]


def _between(graph: LayerGraph, known: Iterable[str], ends: Sequence[str]) -> set[str]:
    """What is computed between known tensors and some ends."""
    return {name for node in graph.between(sorted(known), ends) for name in node.outputs}


def _key(pair: Pair) -> tuple[str, str, Layout]:
    return pair.source, pair.target, pair.layout


def _first(graph: LayerGraph, settled: Collection[str], guesses: Sequence[Pair]) -> list[Pair]:
    """The guesses that are computed from none of the others."""
    guessed = {pair.target for pair in guesses}
    feeding = graph.feeding({*settled, *guessed, *graph.inputs})
    return [pair for pair in guesses if guessed.isdisjoint(feeding.get(pair.target, ()))]


def _learn(evidence: Evidence, fed: Sequence[Pair], names: Sequence[str], values: Fetch) -> bool:
    """Note what comes out right, and the guesses that it was computed from; whether there was any."""
    target, similarity = evidence.target, evidence.similarity
    rows = {name: place for place, name in enumerate(evidence.source.names)}
    columns = {name: place for place, name in enumerate(target.names)}
    found = compare_values(evidence.source.names, evidence.expected, names, values)
    guesses = {pair.target: pair for pair in fed if pair.confidence < 1.0}
    known = {pair.target for pair in fed} | set(target.graph.inputs)
    feeding = target.graph.feeding(known)
    computed: dict[int, list[Pair]] = {}
    proven: dict[str, Pair] = {}
    for place, name in enumerate(names):
        read = feeding.get(name, ())
        guessed = [guesses[item] for item in read if item in guesses]
        same = [
            evidence.source.names[int(row)]
            for row in np.flatnonzero((found.error[:, place] < EQUAL) & (similarity.layout[:, columns[name]] >= 0))
            if all(evidence.source.reaches[rows[pair.source], row] for pair in guessed)
        ]
        if not same:
            continue
        computed[place] = guessed
        meant = name in target.graph.outputs and bool(set(evidence.source.graph.outputs).intersection(same))
        meant = meant or bool(similarity.proven[:, columns[name]].any())
        if len(guessed) < len(read) or meant or _tells(target.graph, known, name):
            proven.update((pair.target, pair) for pair in guessed)
    right = [place for place, guessed in computed.items() if all(pair.target in proven for pair in guessed)]
    before = similarity.equal(EQUAL)
    similarity.improve(found.chosen(right), [columns[names[place]] for place in right])
    for name, pair in proven.items():
        similarity.prove(rows[pair.source], columns[name], pair.layout)
    return bool(proven) or similarity.equal(EQUAL) > before


def _tells(graph: LayerGraph, known: Collection[str], name: str) -> bool:
    """Whether a tensor's values depend on weights behind what's fed: others would have given other values."""
    return any(_has_weights(node) for node in graph.between(sorted(known), [name]))


def _has_weights(node: Node) -> bool:
    return any(np.prod(parameter.shape) > 1 for parameter in node.parameters.values())
