"""Drop the edits that aren't needed: in all pieces at once, as these don't depend on one another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from conrepair.localization.localize import Found
from conrepair.repairs.criteria import computed, is_as_good
from conrepair.repairs.edits import Edit, Graft
from conrepair.repairs.state import RepairState, Taken

__all__ = ["minimized"]

_FEW = 6  # edits, up to which those of two places are dropped together, too

Judge = Callable[[tuple[Taken, ...]], RepairState | None]


def minimized(
    state: RepairState, judge: Judge, over: Callable[[], bool], needed: Callable[[tuple[Taken, ...]], None]
) -> RepairState:
    """The state with no edit that isn't needed.

    An edit that alone fixes a piece is needed: without it the piece was guilty, and no other edit reaches it. Of the
    other pieces each loses one edit at a time, all in one candidate. Where it isn't known what an edit reaches, it's
    dropped alone.

    Args:
        state: What helped.
        judge: The target with proposals; None where it can't be written or run.
        over: Whether nothing else shall be tried.
        needed: Told which candidates are no good without an edit, for a search that goes on.
    """
    fewer, settled = _side_by_side(state, judge, over)
    return _two_by_two(_one_by_one(fewer, judge, over, needed, settled), judge, over, needed)


def _side_by_side(
    state: RepairState, judge: Judge, over: Callable[[], bool]
) -> tuple[RepairState, frozenset[frozenset[str]]]:
    """Without the edits that pieces of their own don't need; and what proposals reach that need no other look."""
    taken = list(state.taken)
    places = {index: 0 for index, item in enumerate(taken) if len(item.edits) > 1 and _stands_alone(taken, index)}
    if len(places) < 2:
        return state, frozenset()
    dropped = False
    settled = {taken[index].reach for index in places}
    while places and not over():
        fewer = list(taken)
        for index, place in places.items():
            edits = taken[index].edits
            fewer[index] = replace(taken[index], edits=(*edits[:place], *edits[place + 1 :]))
        changed = judge(tuple(fewer))
        if changed is None:
            settled -= {taken[index].reach for index in places}
        for index in list(places):
            if changed is not None and _is_clean(changed.found, fewer[index]):
                taken[index], dropped = fewer[index], True
            else:
                places[index] += 1
            if len(taken[index].edits) < 2 or places[index] >= len(taken[index].edits):
                del places[index]
        if changed is not None:
            changed.remove()
    settled -= {taken[index].reach for index in places}  # time was over
    if not dropped:
        return state, frozenset(settled)
    changed = judge(tuple(taken))
    if changed is not None and is_as_good(changed.found, state.found):
        state.remove()
        return changed, frozenset(settled)
    if changed is not None:
        changed.remove()
    return state, frozenset()


def _one_by_one(
    state: RepairState,
    judge: Judge,
    over: Callable[[], bool],
    needed: Callable[[tuple[Taken, ...]], None],
    settled: Set[frozenset[str]],
) -> RepairState:
    """Without each edit that the result is as good without."""
    place = 0
    while not over():
        count = sum(len(item.edits) for item in state.taken)
        if count < 2 or place >= count:
            break
        if _is_needed(state.taken, place, settled):
            place += 1
            continue
        fewer = _without(state.taken, place)
        changed = judge(fewer)
        if changed is not None and is_as_good(changed.found, state.found):
            state.remove()
            state = changed
            continue
        if changed is not None:
            changed.remove()
        needed(fewer)
        place += 1
    return state


def _two_by_two(
    state: RepairState, judge: Judge, over: Callable[[], bool], needed: Callable[[tuple[Taken, ...]], None]
) -> RepairState:
    """Without two edits that only together make no difference, as an order that both operands of a product have."""
    edits = [edit for item in state.taken for edit in item.edits]
    if not 2 < len(edits) <= _FEW:
        return state
    for first, second in itertools.combinations(range(len(edits)), 2):
        if over() or not _alike(edits[first], edits[second]):
            continue
        fewer = _without(_without(state.taken, second), first)
        changed = judge(fewer)
        if changed is not None and is_as_good(changed.found, state.found):
            state.remove()
            return changed
        if changed is not None:
            changed.remove()
        needed(fewer)
    return state


def _alike(first: Edit, second: Edit) -> bool:
    """Whether two edits put the same operators in, each in its place."""
    if not isinstance(first, Graft) or not isinstance(second, Graft):
        return False
    return [step.operator for step in first.operations] == [step.operator for step in second.operations]


def _is_clean(found: Found, item: Taken) -> bool:
    """Whether nothing is guilty where a proposal fixes."""
    return all(item.reach.isdisjoint(computed(piece)) for piece in found.guilty)


def _stands_alone(taken: Sequence[Taken], index: int) -> bool:
    """Whether it's known what a proposal reaches, and no other changes that."""
    own = taken[index]
    others = [item for place, item in enumerate(taken) if place != index]
    known = bool(own.reach) and not own.left
    return known and all(item.reach and item.changes.isdisjoint(own.reach) for item in others)


def _is_needed(taken: Sequence[Taken], place: int, settled: Set[frozenset[str]]) -> bool:
    owners = [index for index, item in enumerate(taken) for _ in item.edits]
    owner = taken[owners[place]]
    return owner.reach in settled or (len(owner.edits) == 1 and _stands_alone(taken, owners[place]))


def _without(taken: Sequence[Taken], place: int) -> tuple[Taken, ...]:
    """Without one edit of all, and without a proposal of which none is left."""
    numbered = itertools.count()
    left = [replace(item, edits=tuple(edit for edit in item.edits if next(numbered) != place)) for item in taken]
    return tuple(item for item in left if item.edits)
