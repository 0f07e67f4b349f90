"""Drop the edits that aren't needed: in all pieces at once, as these don't depend on one another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.repairs.criteria import computed, is_as_good
from conrepair.diagnosis.repairs.edits import Edit, Graft
from conrepair.diagnosis.repairs.state import RepairState, Taken

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
    found = _Minimizing(state, judge, over, needed)
    found.one_by_one(found.side_by_side())
    found.two_by_two()
    return found.state


@dataclass
class _Minimizing:
    """A state that loses edits; see `minimized`."""

    state: RepairState
    judge: Judge
    over: Callable[[], bool]
    needed: Callable[[tuple[Taken, ...]], None]

    def _takes(self, taken: tuple[Taken, ...]) -> bool:
        """Whether fewer proposals are as good as all; they replace these if so."""
        changed = self.judge(taken)
        if changed is None:
            return False
        as_good = is_as_good(changed.found, self.state.found)
        (self.state if as_good else changed).remove()
        self.state = changed if as_good else self.state
        return as_good

    def side_by_side(self) -> frozenset[frozenset[str]]:
        """Leave out the edits that pieces of their own don't need; what proposals reach that need no other look."""
        taken = list(self.state.taken)
        places = {index: 0 for index, item in enumerate(taken) if len(item.edits) > 1 and _stands_alone(taken, index)}
        if len(places) < 2:
            return frozenset()
        dropped = False
        settled = {taken[index].reach for index in places}
        while places and not self.over():
            fewer = list(taken)
            for index, place in places.items():
                edits = taken[index].edits
                fewer[index] = replace(taken[index], edits=(*edits[:place], *edits[place + 1 :]))
            changed = self.judge(tuple(fewer))
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
        return frozenset(settled) if not dropped or self._takes(tuple(taken)) else frozenset()

    def one_by_one(self, settled: Set[frozenset[str]]) -> None:
        """Leave out each edit that the result is as good without."""
        place = 0
        while not self.over():
            count = sum(len(item.edits) for item in self.state.taken)
            if count < 2 or place >= count:
                break
            if not _is_needed(self.state.taken, place, settled):
                fewer = _without(self.state.taken, place)
                if self._takes(fewer):
                    continue
                self.needed(fewer)
            place += 1

    def two_by_two(self) -> None:
        """Leave out two edits that make no difference together, as an order that both operands of a product have."""
        edits = [edit for item in self.state.taken for edit in item.edits]
        if not 2 < len(edits) <= _FEW:
            return
        for first, second in itertools.combinations(range(len(edits)), 2):
            if self.over() or not _alike(edits[first], edits[second]):
                continue
            fewer = _without(_without(self.state.taken, second), first)
            if self._takes(fewer):
                return
            self.needed(fewer)


def _alike(first: Edit, second: Edit) -> bool:
    """Whether two edits put the same operators in, each in its place."""
    if not isinstance(first, Graft) or not isinstance(second, Graft):
        return False
    return [step.operator for step in first.operations] == [step.operator for step in second.operations]


def _is_clean(found: Found, item: Taken) -> bool:
    """Whether no segment is faulty where a proposal edits."""
    return all(item.reach.isdisjoint(computed(piece)) for piece in found.guilty)


def _stands_alone(taken: Sequence[Taken], index: int) -> bool:
    """Whether it's known which segments a proposal changes, and no other proposal changes them."""
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
