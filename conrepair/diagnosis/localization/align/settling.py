"""Settle what was guessed: a pair that makes wrong what reads it is another one, or none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from conrepair.diagnosis.localization.align.compensating import Isolated, without_compensated
from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair, feeding_of, readers_of
from conrepair.diagnosis.localization.align.neighbourhood import Neighbourhood
from conrepair.diagnosis.localization.numbers import pairing
from conrepair.ground.graph.layer_graph import LayerGraph

_TRIALS = 40
_MOVES = 5  # of a doubtful pair to other tensors, before it's dropped


def settle(nodes: tuple[Neighbourhood, Neighbourhood], pairs: Sequence[Pair], isolated: Isolated) -> list[Pair]:
    """Move or drop pairs that make wrong what reads them, and without which that's right.

    Args:
        nodes: Tensors of the source and of the target.
        pairs: Proven ones, and guesses.
        isolated: Runs the target.

    Returns:
        In order; guesses whose values come out right from the cuts before are known now.
    """
    graph = nodes[1].graph
    kept, feeding = list(pairs), feeding_of(graph, pairs)
    errors: Mapping[str, float] = isolated.errors(kept, kept)
    tried: Counter[str] = Counter()
    for _ in range(_TRIALS):
        cleared = {name for name, count in tried.items() if count > _MOVES}
        doubtful = _doubtful(graph, kept, feeding, errors, cleared)
        if not doubtful:
            break
        changed = _tried(kept, doubtful, errors, isolated, _alternatives(nodes, kept, doubtful, errors, tried))
        tried.update(doubtful.keys())
        if changed != kept:
            before = {pair.target: pair for pair in kept}
            moved = {pair.target for pair in changed if before.get(pair.target) != pair}
            kept, feeding, was = changed, feeding_of(graph, changed), feeding
            again = [
                pair
                for pair in kept
                if pair.target in moved
                or feeding.get(pair.target) != was.get(pair.target)
                or not moved.isdisjoint(feeding.get(pair.target, ()))
            ]
            errors = {**errors, **isolated.errors(kept, again)}
    kept, errors = without_compensated(graph, kept, errors, isolated)
    return confirmed(graph, kept, errors, pairing.EQUAL)


def confirmed(graph: LayerGraph, pairs: Sequence[Pair], errors: Mapping[str, float], same: float) -> list[Pair]:
    """The pairs, of which guesses are known where their own values come out right, or those of all that reads them.

    Args:
        graph: The target's.
        pairs: In its order.
        errors: Introduced ones, by the target's names.
        same: Relative L2 below which values are the same.
    """
    readers = readers_of(pairs, feeding_of(graph, pairs))
    return [_confirmed(pair, errors, readers.get(pair.target, ()), same) for pair in pairs]


def _confirmed(pair: Pair, errors: Mapping[str, float], readers: Sequence[str], same: float) -> Pair:
    if pair.confidence == 1.0:
        return pair
    if errors.get(pair.target, math.inf) <= same:
        return replace(pair, confidence=1.0, evidence=f"{pair.evidence}; the same values from the cut before")
    if readers and all(errors.get(name, math.inf) <= same for name in readers):
        return replace(pair, confidence=1.0, evidence=f"{pair.evidence}; what reads it comes out right")
    return pair


def _tried(
    pairs: Sequence[Pair],
    doubtful: Mapping[str, Sequence[str]],
    errors: Mapping[str, float],
    isolated: Isolated,
    moved: Mapping[str, Pair | None],
) -> list[Pair]:
    """The pairs, of which those are moved (or dropped, for None) that make what reads them right.

    Where nothing comes out right, as all layers are wrong by a little, a guess is moved to what's much nearer, if
    what reads it gets no worse by that; or to what's nearer if what reads it is, too; and dropped if that is.
    """
    other = [moved.get(pair.target, pair) for pair in pairs]
    rest = _distinct([pair for pair in other if pair is not None])
    guesses = [pair.target for pair in pairs if pair.confidence < 1.0]
    instead = {name: pair.target for name in guesses if (pair := moved.get(name)) is not None}
    behind = {name for target in moved for name in doubtful[target]} | {*instead.values()}
    found = isolated.errors(rest, [pair for pair in rest if pair.target in behind])

    def is_right(target: str) -> bool:
        return all(found.get(name, math.inf) <= pairing.EQUAL for name in doubtful[target])

    def is_nearer(target: str) -> bool:
        own = found.get(instead.get(target, ""), math.inf if moved[target] else errors[target] / pairing.BOTH)
        readers = [(errors[name], found.get(name, math.inf)) for name in doubtful[target]]
        return any(
            own * times <= errors[target] and all(now * at_readers <= before for before, now in readers)
            for times, at_readers in ((pairing.NEARER, 1 / pairing.NO_WORSE), (pairing.BOTH, pairing.BOTH))
        )

    better = {target for target in moved if is_right(target) or is_nearer(target)}
    changed = [moved[pair.target] if pair.target in better else pair for pair in pairs]
    return _distinct([pair for pair in changed if pair is not None])


def _distinct(pairs: Sequence[Pair]) -> list[Pair]:
    """Drop duplicate assignments: neighbours may have moved to the same tensor of the target."""
    return list({pair.target: pair for pair in reversed(pairs)}.values())[::-1]


def _alternatives(
    nodes: tuple[Neighbourhood, Neighbourhood],
    pairs: Sequence[Pair],
    doubtful: Mapping[str, Sequence[str]],
    errors: Mapping[str, float],
    tried: Mapping[str, int],
) -> dict[str, Pair | None]:
    """For each doubtful pair the next possibility: tensors of either side between the cuts around it; then none.

    What another guess has, and wrongly, is free: a row of guesses may be off by one.
    """
    held = [pair for pair in pairs if pair.confidence == 1.0 or errors.get(pair.target, 0.0) <= pairing.EQUAL]
    taken = {pair.source for pair in pairs}, {pair.target for pair in held}
    partner = {pair.target: pair.source for pair in pairs}
    found: dict[str, Pair | None] = {}
    for pair in pairs:
        if pair.target in doubtful:
            ends = [partner[name] for name in doubtful[pair.target]], doubtful[pair.target]
            moves = [
                *((name, pair.target) for name in _between(nodes[0], pair.source, ends[0], taken[0])),
                *((pair.source, name) for name in _between(nodes[1], pair.target, ends[1], taken[1])),
            ]
            shapes = [(nodes[0].shape(one), nodes[1].shape(two)) for one, two in moves]
            fitting = [move for move, shape in zip(moves, shapes, strict=True) if layouts(*shape)]
            place = tried[pair.target]
            found[pair.target] = _moved(nodes, pair, *fitting[place]) if place < min(len(fitting), _MOVES) else None
    return found


def _between(side: Neighbourhood, name: str, ends: Sequence[str], taken: Set[str]) -> list[str]:
    """Compared tensors that aren't taken, between the cuts before a tensor and those behind it, the nearest first."""
    begin = [*taken - {name}, *side.graph.inputs]
    computed = [out for node in side.graph.between(frozenset(begin), ends) for out in node.outputs]
    free = [out for out in computed if out in side.place and out not in {name, *taken, *ends}]
    # As far on the way as behind, one behind is likelier: a piece's last tensor is its result.
    return sorted(free, key=lambda out: (abs(side.place[out] - side.place[name]), -side.place[out]))


def _moved(nodes: tuple[Neighbourhood, Neighbourhood], pair: Pair, source: str, target: str) -> Pair:
    choices = layouts(nodes[0].shape(source), nodes[1].shape(target))
    layout = next((item for item in choices if item.axes == pair.layout.axes), choices[0])
    return replace(pair, source=source, target=target, layout=layout)


def _doubtful(
    graph: LayerGraph,
    pairs: Sequence[Pair],
    feeding: Mapping[str, Sequence[str]],
    errors: Mapping[str, float],
    cleared: Set[str],
) -> dict[str, list[str]]:
    """Pairs that differ and whose readers differ, no two of them neighbours; each with its readers."""
    readers = readers_of(pairs, feeding)
    found: dict[str, list[str]] = {}
    blocked: set[str] = set()
    for pair in pairs:
        name = pair.target
        behind = readers.get(name, [])
        if errors.get(name, 0.0) <= pairing.EQUAL or not behind or name in graph.outputs:
            continue
        if name not in blocked and name not in cleared and any(errors[item] > pairing.EQUAL for item in behind):
            found[name] = behind
            blocked.update(behind)
    return found
