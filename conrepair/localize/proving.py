"""Prove pairs of tensors behind faults, where no values are the same: feed guesses, and see what comes out right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.graph.layer_graph import Array, LayerGraph, Node
from conrepair.localize.matching import EXACT, LEAST, Likeness, Pair, match
from conrepair.localize.similarity import Matrix, Similarity, compare_values
from conrepair.localize.structure import Neighbourhood, Structure
from conrepair.metrics.running_error import relative_l2

__all__ = ["Evidence", "prove"]

_ROUNDS = 48
_IDLE = 12  # rounds that show nothing, after which nothing more is expected
_SHAKEN = 0.02  # of a score, for each of them
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
        likeness: When values are the same.
    """

    source: Neighbourhood
    target: Neighbourhood
    similarity: Similarity
    structure: Structure
    expected: Fetch
    likeness: Likeness = EXACT

    def match(self, shaken: Matrix | float = 0.0, least: float = LEAST) -> list[Pair]:
        """The pairs that are likeliest by what's known."""
        sides = self.source, self.target, self.similarity, self.structure
        return match(*sides, likeness=self.likeness, shaken=shaken, least=least)

    def holds(self, pair: Pair) -> bool:
        """Whether the target's tensor can hold the source's values: what's cut off when it's fed proves nothing."""
        stored = self.target.graph.tensors[pair.target].stored
        if stored is None:
            return True
        values = self.expected(pair.source)
        return relative_l2(values, np.clip(values, *stored)) <= self.likeness.error

    def known(self) -> list[Pair]:
        """Those of them that values, or what's computed from them, show."""
        return [pair for pair in self.match() if pair.confidence == 1.0]


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
    trials.run(LEAST, trials.behind)
    known = evidence.known()
    if not _explained(evidence, known):
        return evidence.match()
    trials.run(_LEAST_INSIDE, trials.inside)
    return evidence.known()


def _explained(evidence: Evidence, known: Sequence[Pair]) -> bool:
    """Whether every output of the target comes out right from what's known."""
    ends = set(evidence.target.names).intersection(evidence.target.graph.outputs)
    return ends.issubset(pair.target for pair in known)


Chosen = tuple[list[Pair], list[str]]


class _Trials:
    """Rounds of guesses, none of which is made twice."""

    def __init__(self, evidence: Evidence, compute: Compute) -> None:
        self._evidence, self._compute = evidence, compute
        self._rows = {name: place for place, name in enumerate(evidence.source.names)}
        self._columns = {name: place for place, name in enumerate(evidence.target.names)}
        self._tried = np.zeros(evidence.similarity.error.shape, np.bool_)
        self._generator = np.random.default_rng(_SEED)

    def run(self, least: float, choose: Callable[[Sequence[Pair], Sequence[Pair]], Chosen | None]) -> None:
        """Try until that's enough, or until nothing new is seen.

        Args:
            least: Score of a guess.
            choose: From what's known and what's guessed, those guesses that are made, and the tensors that they are
                judged by; None when that's enough.
        """
        idle = 0
        for _ in range(_ROUNDS):
            known = self._evidence.known()
            chosen = choose(known, self._guesses(known, _SHAKEN * idle, least))
            if chosen is None or idle > _IDLE:
                return
            made, wanted = chosen
            for pair in made:
                self._tried[self._rows[pair.source], self._columns[pair.target]] = True
            fed = [*known, *made]
            idle = 0 if made and _learn(self._evidence, fed, wanted, self._compute(fed, wanted)) else idle + 1

    def behind(self, known: Sequence[Pair], guesses: Sequence[Pair]) -> Chosen | None:
        """The first guesses behind what's known, until the outputs are explained."""
        if _explained(self._evidence, known):
            return None
        target = self._evidence.target
        made = _first(target.graph, known, guesses)
        reached = np.asarray(target.reaches[[self._columns[pair.target] for pair in made]].any(axis=0))
        settled = {pair.target for pair in known}
        names = [name for name, place in self._columns.items() if reached[place] and name not in settled]
        return made, names

    def inside(self, known: Sequence[Pair], guesses: Sequence[Pair]) -> Chosen | None:
        """The first guesses between what's known and the tensors behind faults, so that less lies between them."""
        similarity, target = self._evidence.similarity, self._evidence.target
        wrong = np.asarray((similarity.proven & (similarity.error >= self._evidence.likeness.error)).any(axis=0))
        ends = [name for name, place in self._columns.items() if wrong[place]]
        partner = {pair.target: pair.source for pair in known}
        ours = _between(self._evidence.source.graph, partner.values(), [partner[name] for name in ends])
        theirs = _between(target.graph, partner, ends)
        made = _first(
            target.graph, known, [pair for pair in guesses if pair.source in ours and pair.target in theirs]
        )
        return (made, ends) if made else None

    def _guesses(self, known: Sequence[Pair], shaken: float, least: float) -> list[Pair]:
        """Pairs that were not tried, of tensors that aren't known."""
        noise = self._generator.normal(0, shaken, self._tried.shape)
        ours, theirs = ({getattr(pair, side) for pair in known} for side in ("source", "target"))
        found = []
        for pair in self._evidence.match(noise - self._tried, least):
            place = self._rows[pair.source], self._columns[pair.target]
            if pair.source in ours or pair.target in theirs or self._tried[place]:
                continue
            if self._evidence.holds(pair):
                found.append(pair)
            else:
                self._tried[place] = True
        return found


def _between(graph: LayerGraph, known: Iterable[str], ends: Sequence[str]) -> set[str]:
    """What is computed between known tensors and some ends."""
    return {name for node in graph.between(sorted(known), ends) for name in node.outputs}


def _first(graph: LayerGraph, known: Sequence[Pair], guesses: Sequence[Pair]) -> list[Pair]:
    """The guesses that are computed from none of the others."""
    guessed = {pair.target for pair in guesses}
    feeding = graph.feeding({*(pair.target for pair in known), *guessed, *graph.inputs})
    return [pair for pair in guesses if guessed.isdisjoint(feeding.get(pair.target, ()))]


def _learn(evidence: Evidence, fed: Sequence[Pair], names: Sequence[str], values: Fetch) -> bool:
    """Note what comes out right, and the guesses that it was computed from; whether there was any."""
    target, similarity = evidence.target, evidence.similarity
    rows = {name: place for place, name in enumerate(evidence.source.names)}
    columns = {name: place for place, name in enumerate(target.names)}
    alike = evidence.likeness.error
    found = compare_values(evidence.source.names, evidence.expected, names, values, hidden=similarity.hidden)
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
            for row in np.flatnonzero((found.error[:, place] < alike) & (similarity.layout[:, columns[name]] >= 0))
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
    before = similarity.equal(alike)
    similarity.improve(found.chosen(right), [columns[names[place]] for place in right])
    for name, pair in proven.items():
        similarity.prove(rows[pair.source], columns[name], pair.layout)
    return bool(proven) or similarity.equal(alike) > before


def _tells(graph: LayerGraph, known: Collection[str], name: str) -> bool:
    """Whether a tensor's values depend on weights behind what's fed: others would have given other values."""
    return any(_has_weights(node) for node in graph.between(sorted(known), [name]))


def _has_weights(node: Node) -> bool:
    return any(np.prod(parameter.shape) > 1 for parameter in node.parameters.values())
