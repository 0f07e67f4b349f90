"""Drop pairs whose errors don't matter behind them: those that cancel, as of a factor moved, and those forgiven."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import combinations, zip_longest
from pathlib import Path

import numpy as np

from conrepair.diagnosis.localization.align.matching import Feeding, Pair, feeding_of, readers_of
from conrepair.diagnosis.localization.numbers import pairing
from conrepair.diagnosis.localization.run.activations import Activations, Isolation, add_result
from conrepair.diagnosis.localization.run.shelf import Shelf
from conrepair.ground.graph.layer_graph import Array, LayerGraph
from conrepair.ground.metrics.running_error import RunningError


class Isolated:
    """Runs of the target with the source's activations, on one batch, to try guesses: what can't be run is wrong."""

    def __init__(self, source: Activations, target: Activations, folder: Path) -> None:
        self._source, self._target, self._feeds = source, target.network, target.feeds
        self._shapes = target.shapes()
        self._shelf = Shelf(folder / "isolated")
        self._shelf.put_all(target.feeds.items())

    def run(self, pairs: Sequence[Pair], names: Sequence[str]) -> Callable[[str], Array]:
        """Tensors, computed from the nearest pairs; no number where they can't be."""
        left = dict.fromkeys(names)
        for name, array in Isolation(self._target, pairs, names).attempt(self._source.__getitem__, self._feeds):
            self._shelf.put(name, array)
            left.pop(name, None)
            del array  # so that nothing holds it while the next piece runs
        inputs = self._target.graph.inputs
        self._shelf.put_all((name, np.full(self._shapes[name], np.nan)) for name in left if name not in inputs)
        return self._shelf.__getitem__

    def errors(self, pairs: Sequence[Pair], wanted: Sequence[Pair]) -> dict[str, float]:
        """Introduced errors of some pairs, by their targets' names; infinite where nothing can be computed."""
        inputs = set(self._target.graph.inputs)
        chosen = {pair.target: pair for pair in wanted if pair.target not in inputs}
        found = dict.fromkeys(chosen, math.inf)
        isolation = Isolation(self._target, pairs, list(chosen))
        for name, array in isolation.attempt(self._source.__getitem__, self._feeds):
            pair = chosen[name]
            found[name] = add_result(RunningError(), pair, self._source[pair.source], array).error
        return found


_NEAREST = 4  # wrong pairs before another one, of which any may be what it takes back
_STEPS = 24  # cuts between the two, at most
_ROUNDS = 4
_FORGIVING = 2  # cuts behind one another that a wrong tensor makes wrong, before one that forgives it
_FORGIVERS = {"Softmax", "LogSoftmax", "Hardmax"}


def without_compensated(
    graph: LayerGraph, pairs: Sequence[Pair], errors: Mapping[str, float], isolated: Isolated
) -> tuple[list[Pair], Mapping[str, float]]:
    """Drop pairs that differ by what a later piece takes back, or doesn't mind.

    A scale that the source applies behind a product, and the target has in the weights before it, makes two pieces
    wrong that are right together. What lies between such two is no pair: without it, the later one comes out right.

    Args:
        graph: The target's.
        pairs: In its order.
        errors: Introduced ones, by the target's names.
        isolated: Runs the target.

    Returns:
        The others, in order, and the introduced errors of those.
    """
    kept = list(pairs)
    for _ in range(_ROUNDS):
        order = [pair.target for pair in kept]
        feeding = feeding_of(graph, kept)
        wrong = {pair.target for pair in kept if errors.get(pair.target, 0.0) > pairing.EQUAL}
        if not wrong:
            break
        choices = [_choices(name, feeding, wrong, order) for name in order if name in wrong]
        dropped = _forgiven(graph, kept, errors, feeding, wrong.difference(graph.outputs), isolated)
        done: set[str] = set()
        for same_rank in zip_longest(*choices):
            ahead = [item for item in same_rank if item is not None]
            while ahead := [(end, between) for end, between in ahead if end not in dropped | done]:
                group, ahead = _apart(ahead)
                right = _right_without(kept, errors, group, dropped, isolated)
                done.update(right)
                dropped.update(*right.values())
        if not dropped:
            break
        kept = [pair for pair in kept if pair.target not in dropped]
        errors = isolated.errors(kept, kept)
    return kept, errors


def _forgiven(
    graph: LayerGraph,
    pairs: Sequence[Pair],
    errors: Mapping[str, float],
    feeding: Feeding,
    wrong: Set[str],
    isolated: Isolated,
) -> set[str]:
    """Wrong pairs without which what reads them stays right.

    A mask of other large numbers, behind which a softmax is right; queries and keys of which one is scaled by what
    the other one isn't. Pairs that are read by the same are left out together. One alone whose reader hides it isn't:
    an offset rounds away what a fault changes.
    """
    readers = readers_of(pairs, feeding)
    found: set[str] = set()
    for depth in range(_FORGIVING):
        groups: list[tuple[set[str], set[str]]] = []
        for name in wrong - found:
            inside, ends = _behind(name, readers, depth)
            for other in [group for group in groups if not (inside | ends).isdisjoint(group[0] | group[1])]:
                groups.remove(other)
                inside, ends = inside | other[0], ends | other[1]
            groups.append((inside, ends - inside))
        groups = [
            (inside, ends)
            for inside, ends in groups
            if ends
            and (len(inside & wrong) > 1 or all(graph.producers[item].op in _FORGIVERS for item in ends))
            and all(errors.get(item, math.inf) <= pairing.EQUAL for item in [*inside - wrong, *ends])
        ]
        gone = found.union(*(inside for inside, _ in groups))
        rest = [pair for pair in pairs if pair.target not in gone]
        wanted = set[str]().union(*(ends for _, ends in groups))
        now = isolated.errors(rest, [pair for pair in rest if pair.target in wanted]) if wanted else {}
        for inside, ends in groups:
            if all(now.get(end, math.inf) <= max(pairing.ROUNDING, pairing.FORGIVEN * errors[end]) for end in ends):
                found |= inside
    return found


def _behind(name: str, readers: Mapping[str, Sequence[str]], depth: int) -> tuple[set[str], set[str]]:
    """A tensor with what reads it, so many cuts far, and what reads that."""
    inside, ends = {name}, set(readers.get(name, ()))
    for _ in range(depth):
        inside |= ends
        ends = {item for end in ends for item in readers.get(end, ())} - inside
    return inside, ends


def _choices(end: str, feeding: Feeding, wrong: Set[str], order: Sequence[str]) -> list[tuple[str, frozenset[str]]]:
    """What may be dropped before a wrong pair: up to any of the nearest other ones, and all in a row."""
    steps, ahead = {end: 0}, [end]
    found: list[str] = []
    for name in ahead:  # grows; the nearest first
        if name in wrong and name != end and len(found) < _NEAREST:
            found.append(name)
        if steps[name] < _STEPS:
            for before in feeding.get(name, ()):
                if before not in steps:
                    steps[before] = steps[name] + 1
                    ahead.append(before)
    among = [name for name in order if name in steps]
    ways = [_between(first, end, feeding, among) for first in found]
    sets = [frozenset().union(*some) for count in range(1, len(ways) + 1) for some in combinations(ways, count)]
    sets.append(_in_a_row(end, feeding, wrong))
    return [(end, between) for between in sorted(filter(None, set(sets)), key=len)]


def _in_a_row(end: str, feeding: Feeding, wrong: Set[str]) -> frozenset[str]:
    """Wrong pairs before one, with nothing but wrong ones on the way: a normalization written otherwise."""
    found = ahead = {end}
    for _ in range(_STEPS):
        ahead = {name for item in ahead for name in feeding.get(item, ()) if name in wrong} - found
        found = found | ahead
    return frozenset(found - {end})


def _between(first: str, end: str, feeding: Feeding, among: Sequence[str]) -> frozenset[str]:
    """The nodes on ways from the first one to the end."""
    behind = {first}
    for name in among:
        if not behind.isdisjoint(feeding.get(name, ())):
            behind.add(name)
    ahead = set(feeding.get(end, ()))
    for name in reversed(among):
        if name in ahead:
            ahead.update(feeding.get(name, ()))
    return frozenset(behind & ahead)


def _apart(
    ahead: Sequence[tuple[str, frozenset[str]]],
) -> tuple[list[tuple[str, frozenset[str]]], list[tuple[str, frozenset[str]]]]:
    """Tensor pairs that can be tried together, as none drops a boundary that another needs; and the others."""
    group, rest = [], []
    ends: set[str] = set()
    gone: set[str] = set()
    for end, between in ahead:
        if end in gone or not ends.isdisjoint(between) or not gone.isdisjoint(between):
            rest.append((end, between))
        else:
            group.append((end, between))
            ends.add(end)
            gone |= between
    return group, rest


def _right_without(
    pairs: Sequence[Pair],
    errors: Mapping[str, float],
    group: Sequence[tuple[str, frozenset[str]]],
    dropped: Set[str],
    isolated: Isolated,
) -> dict[str, frozenset[str]]:
    """Ends of segments that are right without the tensor pairs before them, and these pairs."""
    gone = set(dropped).union(*(between for _, between in group))
    rest = [pair for pair in pairs if pair.target not in gone]
    ends = {end for end, _ in group}
    found = isolated.errors(rest, [pair for pair in rest if pair.target in ends])
    most = {end: min(pairing.EQUAL, pairing.TAKEN_BACK * errors[end]) for end in ends}
    return {end: between for end, between in group if found.get(end, math.inf) <= most[end]}
