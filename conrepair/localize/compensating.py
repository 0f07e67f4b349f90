"""Drop pairs between two pieces whose errors cancel: a factor moved, not lost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from itertools import zip_longest

from conrepair.graph.layer_graph import LayerGraph
from conrepair.localize.isolated import Isolated
from conrepair.localize.matching import EQUAL, Pair

__all__ = ["without_compensated"]

_NEAREST = 2  # wrong pairs before another one, that may be what it takes back
_STEPS = 24  # cuts between the two, at most
_ROUNDS = 4

Feeding = Mapping[str, Sequence[str]]


def without_compensated(
    graph: LayerGraph, pairs: Sequence[Pair], errors: Mapping[str, float], isolated: Isolated
) -> tuple[list[Pair], Mapping[str, float]]:
    """Drop pairs that differ by what a later piece takes back.

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
        feeding = graph.feeding({*order, *graph.inputs})
        wrong = {pair.target for pair in kept if errors.get(pair.target, 0.0) > EQUAL}
        if len(wrong) < 2:
            break
        choices = [_choices(name, feeding, wrong, order) for name in order if name in wrong]
        dropped: set[str] = set()
        done: set[str] = set()
        for same_rank in zip_longest(*choices):
            ahead = [item for item in same_rank if item is not None]
            while ahead := [(end, between) for end, between in ahead if end not in dropped | done]:
                group, ahead = _apart(ahead)
                right = _right_without(kept, group, dropped, isolated)
                done.update(right)
                dropped.update(*right.values())
        if not dropped:
            break
        kept = [pair for pair in kept if pair.target not in dropped]
        errors = isolated.errors(kept, kept)
    return kept, errors


def _choices(end: str, feeding: Feeding, wrong: Set[str], order: Sequence[str]) -> list[tuple[str, frozenset[str]]]:
    """What may be dropped before a wrong pair: up to the nearest other one, the next one, and both."""
    steps, ahead = {end: 0}, [end]
    found: list[str] = []
    for name in ahead:  # grows; the nearest first
        if name in wrong and name != end:
            found.append(name)
        if steps[name] < _STEPS and len(found) < _NEAREST:
            for before in feeding.get(name, ()):
                if before not in steps:
                    steps[before] = steps[name] + 1
                    ahead.append(before)
    among = [name for name in order if name in steps]
    sets = [_between(first, end, feeding, among) for first in found]
    if len(sets) > 1:
        sets.append(sets[0].union(*sets[1:]))
    return [(end, between) for between in sorted(set(sets), key=len)]


def _between(first: str, end: str, feeding: Feeding, among: Sequence[str]) -> frozenset[str]:
    """The first one, and what lies on a way from it to the end."""
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
    """Those that can be tried together, none having dropped what another one is judged by; and the others."""
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
    pairs: Sequence[Pair], group: Sequence[tuple[str, frozenset[str]]], dropped: Set[str], isolated: Isolated
) -> dict[str, frozenset[str]]:
    """The ends that come out right without what lies before them, and that."""
    gone = set(dropped).union(*(between for _, between in group))
    rest = [pair for pair in pairs if pair.target not in gone]
    ends = {end for end, _ in group}
    found = isolated.errors(rest, [pair for pair in rest if pair.target in ends])
    return {end: between for end, between in group if found.get(end, math.inf) <= EQUAL}
