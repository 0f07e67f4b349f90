"""Prove pairs of tensors behind faults, where no values are the same: feed guesses, and see what comes out right."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence, Set

import numpy as np

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localization.evidence import Evidence
from conrepair.localization.guessing import Wanted
from conrepair.localization.learning import has_weights, learn
from conrepair.localization.matching import LEAST, Pair
from conrepair.localization.neighbourhood import Neighbourhood, neighbours_of
from conrepair.localization.samples import Fetch, Matrix, Places
from conrepair.localization.weights import weight_of

__all__ = ["prove"]

_ROUNDS = 48
_SERIES = 8  # faults one behind the other, from which on many more are expected
_SWEEPS = 4
_IDLE = 12  # rounds that show nothing, after which nothing more is expected
_SHAKEN = 0.02  # of a score, for each of them
_LEAST_INSIDE = 0.1  # of a score from 0 to 1, where few are possible
_GOOD = 0.7  # of a score, for a guess that's never proven
_SEED = 20261120

Compute = Callable[[Sequence[Pair], Sequence[str]], Fetch]


def prove(evidence: Evidence, compute: Compute) -> list[Pair]:
    """Pair tensors, those behind faults by what is computed from them.

    Values show which tensors are the same up to a fault, and behind it no longer. There, structure guesses. A guess
    is proven by feeding the source's values to the target in its place: when an output, a layer with weights, or one
    that also reads what's known, then gives what the source has, it was right, and everything up to the next fault
    is known by its values again. So each round feeds the guesses that nothing else unknown lies before; one that
    shows nothing isn't made again. Where fault follows fault, as when one rule is wrong in all layers, all guesses
    are fed at once after some rounds, which proves what lies between them if the graphs are alike.

    Args:
        evidence: What's known; grows.
        compute: Feeds pairs, and gives the target's values of some tensors, computed from the nearest pairs before.

    Returns:
        In the target's order. Where all outputs are explained, only what's proven, and where several layers with
        weights lie in front of what's wrong, good guesses between them; otherwise all guesses. Those have a
        confidence below 1.
    """
    if not _explained(evidence, evidence.known()):
        evidence.similarity.look_apart(neighbours_of(evidence.source, evidence.target))
    trials = _Trials(evidence, compute)
    trials.run(LEAST, trials.behind, _SERIES)
    if not _explained(evidence, evidence.known()):
        trials.sweep()
        trials.run(LEAST, trials.behind)
    known = evidence.known()
    if not _explained(evidence, known):
        return evidence.match()
    trials.run(_LEAST_INSIDE, trials.inside)
    order = evidence.target.place
    return sorted([*evidence.known(), *trials.surmised()], key=lambda pair: order[pair.target])


def _explained(evidence: Evidence, known: Sequence[Pair]) -> bool:
    """Whether every output of the target comes out right from what's known."""
    target, similarity = evidence.target, evidence.similarity
    ends = set(target.names).intersection(target.graph.outputs)
    right = similarity.closest() < evidence.likeness.error
    right[[*similarity.proven.values()]] = True
    return ends.issubset(pair.target for pair in known if right[target.place[pair.target]])


Chosen = tuple[list[Pair], list[str]]
Guess = Callable[[bool, tuple[Places, Places] | None], list[Pair]]
"""Gives guesses: whether only the first ones behind what's known, and of which places (all for None)."""


class _Trials:
    """Rounds of guesses, none of which is made twice."""

    def __init__(self, evidence: Evidence, compute: Compute) -> None:
        self._evidence, self._compute = evidence, compute
        self._tried: set[tuple[int, int]] = set()
        self._generator = np.random.default_rng(_SEED)

    def run(
        self, least: float, choose: Callable[[Sequence[Pair], Guess], Chosen | None], rounds: int = _ROUNDS
    ) -> None:
        """Try until that's enough, or until nothing new is seen.

        Args:
            least: Score of a guess.
            choose: From what's known and what can be guessed, the guesses that are made, and the tensors that they
                are judged by; None when that's enough.
            rounds: At most.
        """
        idle = 0
        for _ in range(rounds):
            known = self._evidence.known()
            chosen = choose(known, functools.partial(self._guesses, known, _SHAKEN * idle, least))
            if chosen is None or idle > _IDLE:
                return
            made, wanted = chosen
            self._tried.update(map(self._place, made))
            fed = [*known, *made]
            idle = 0 if made and learn(self._evidence, fed, wanted, self._compute(fed, wanted)) else idle + 1

    def sweep(self) -> None:
        """Feed all guesses at once, then what's known, as long as that shows something; guesses may be made again."""
        for _ in range(_SWEEPS):
            shown = self._fed(self._guesses(self._evidence.known(), 0.0, LEAST, False, None))
            if not self._fed([]) and not shown:
                return

    def _fed(self, made: Sequence[Pair]) -> bool:
        """Whether anything is shown by feeding what's known, and guesses."""
        target, known = self._evidence.target, self._evidence.known()
        settled = {pair.target for pair in known}
        wanted = [name for name in target.names if name not in settled]
        fed = [*known, *made]
        return bool(wanted) and learn(self._evidence, fed, wanted, self._compute(fed, wanted))

    def behind(self, known: Sequence[Pair], guess: Guess) -> Chosen | None:
        """The first guesses behind what's known, until the outputs are explained."""
        if _explained(self._evidence, known):
            return None
        target = self._evidence.target
        made = _first(target.graph, known, guess(True, None))
        reached = target.before_each({pair.target: 1 for pair in made}, target.names)
        settled = {pair.target for pair in known}
        return made, [name for name, bit in zip(target.names, reached, strict=True) if bit and name not in settled]

    def inside(self, known: Sequence[Pair], guess: Guess) -> Chosen | None:
        """The first guesses between what's known and the tensors behind faults, so that less lies between them."""
        ends = self._wrong(known)
        made = _first(self._evidence.target.graph, known, guess(False, self._before(known, ends)))
        return (made, ends) if made else None

    def surmised(self) -> list[Pair]:
        """Good guesses between what's known and a tensor behind several layers with weights that aren't all right.

        Where each layer is wrong, no guess can be proven. Layers with the same weights are the same all the same, and
        what lies between two of them tells them apart.
        """
        known = self._evidence.known()
        graph = self._evidence.target.graph
        cuts = {pair.target for pair in known}
        ends = [
            end for end in self._wrong(known) if sum(has_weights(node) for node in graph.between(cuts, [end])) > 1
        ]
        if not ends:
            return []
        found = self._evidence.match(Wanted(_GOOD, None, False, self._before(known, ends)))
        producers = self._evidence.source.graph.producers, graph.producers
        return [
            pair
            for pair in found
            if pair.target not in cuts and _same_weights(producers[0].get(pair.source), producers[1].get(pair.target))
        ]

    def _wrong(self, known: Sequence[Pair]) -> list[str]:
        """Tensors that are proven, and don't come out right."""
        similarity, target = self._evidence.similarity, self._evidence.target
        wrong = [
            pair for pair in similarity.proven.items() if similarity.error(*pair) >= self._evidence.likeness.error
        ]
        settled = {pair.target for pair in known}
        places = sorted(column for _, column in wrong)
        return [name for name in map(target.names.__getitem__, places) if name in settled]

    def _before(self, known: Sequence[Pair], ends: Sequence[str]) -> tuple[Places, Places]:
        """What's computed between what's known and some of it, on both sides."""
        partner = {pair.target: pair.source for pair in known}
        ours = _between(self._evidence.source, set(partner.values()), [partner[name] for name in ends])
        return ours, _between(self._evidence.target, partner.keys(), ends)

    def _guesses(
        self, known: Sequence[Pair], shaken: float, least: float, first: bool, among: tuple[Places, Places] | None
    ) -> list[Pair]:
        """Pairs that were not tried, of tensors that aren't known."""
        ours, theirs = ({getattr(pair, side) for pair in known} for side in ("source", "target"))
        found = []
        shake = functools.partial(self._shake, shaken)
        for pair in self._evidence.match(Wanted(least, shake, first, among)):
            if pair.source in ours or pair.target in theirs or self._place(pair) in self._tried:
                continue
            if self._evidence.holds(pair):
                found.append(pair)
            else:
                self._tried.add(self._place(pair))
        return found

    def _shake(self, shaken: float, rows: Places, columns: Places) -> Matrix:
        """Something by chance, and less for pairs that were tried."""
        result = self._generator.normal(0, shaken, (len(rows), len(columns)))
        down, across = ({place: index for index, place in enumerate(side.tolist())} for side in (rows, columns))
        for row, column in self._tried:
            if row in down and column in across:
                result[down[row], across[column]] -= 1.0
        return result

    def _place(self, pair: Pair) -> tuple[int, int]:
        return self._evidence.source.place[pair.source], self._evidence.target.place[pair.target]


def _between(side: Neighbourhood, known: Set[str], ends: Sequence[str]) -> Places:
    """What is computed between known tensors and some ends."""
    names = (name for node in side.graph.between(known, ends) for name in node.outputs)
    return np.array([side.place[name] for name in names if name in side.place], np.int64)


def _first(graph: LayerGraph, known: Sequence[Pair], guesses: Sequence[Pair]) -> list[Pair]:
    """The guesses that are computed from none of the others."""
    guessed = {pair.target for pair in guesses}
    feeding = graph.feeding({*(pair.target for pair in known), *guessed, *graph.inputs})
    return [pair for pair in guesses if guessed.isdisjoint(feeding.get(pair.target, ()))]


def _same_weights(one: Node | None, other: Node | None) -> bool:
    """Whether two nodes have the same numbers."""
    ours, theirs = (None if node is None else weight_of(node) for node in (one, other))
    return ours is not None and theirs is not None and np.array_equal(ours.numpy(), theirs.numpy())
