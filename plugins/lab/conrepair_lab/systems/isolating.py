"""Which of a system's switches a failure hangs on: all smallest sets that cause it, and all that heal it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conrepair.ground.runtime.bisection import smallest_failing


@dataclass(frozen=True)
class Isolated:
    """What came of it; sets of places of the list that was asked about.

    Attributes:
        causes: Sets with which alone it fails, and with nothing left out of them doesn't. One with two places is a
            pair that only fails together. Empty: no switch is to blame.
        heals: Sets without which it doesn't fail, of which nothing can be spared; the smallest first.
        tries: How often it was asked.
        exact: Whether these are all, and each the smallest; False where no more could be asked: then the last cause
            is what was left by then.
    """

    causes: tuple[frozenset[int], ...]
    heals: tuple[frozenset[int], ...]
    tries: int
    exact: bool


class _EnoughError(Exception):
    """No more may be asked."""


def isolate(count: int, fails: Callable[[Sequence[int]], bool], *, tries: int) -> Isolated:
    """Isolate what a failure hangs on, whether that's one switch, several, or pairs that only fail together.

    Causes are found by halving and delta debugging (`smallest_failing`), one after the other, each among what no set
    of those before it has taken away; what hits all causes heals. This is the tree of hitting sets of Reiter ("A
    Theory of Diagnosis from First Principles", 1987), breadth first. It's exact where more switches never make a
    failure vanish.

    Args:
        count: Of the list of switches, all of which are on where it fails.
        fails: Whether it fails with those at some places alone, given in order.
        tries: How often that may be asked.
    """
    search = _Search(count, fails, tries)
    try:
        if search.fails(frozenset()):
            return Isolated((), (), search.tries, exact=True)
        search.grow()
    except _EnoughError:
        return search.result(exact=False)
    return search.result(exact=True)


class _Search:
    def __init__(self, count: int, fails: Callable[[Sequence[int]], bool], most: int) -> None:
        self.tries = 0
        self._all = frozenset(range(count))
        self._fails, self._most = fails, most
        self._known = {self._all: True}
        self._causes: list[frozenset[int]] = []
        self._heals: list[frozenset[int]] = []

    def fails(self, on: frozenset[int]) -> bool:
        """Whether it fails with these alone; asked once of each set."""
        if on not in self._known:
            if self.tries >= self._most:
                raise _EnoughError
            self.tries += 1
            self._known[on] = self._fails(sorted(on))
        return self._known[on]

    def grow(self) -> None:
        """Take sets of switches away, smaller ones first, and look for a cause in the rest."""
        waiting = deque([frozenset[int]()])
        seen = {frozenset[int]()}
        while waiting:
            off = waiting.popleft()
            if any(healing <= off for healing in self._heals):
                continue
            cause = self._cause_without(off)
            if cause is None:
                self._heals.append(off)
                continue
            for wider in (off | {place} for place in sorted(cause)):
                if wider not in seen:
                    seen.add(wider)
                    waiting.append(wider)

    def _cause_without(self, off: frozenset[int]) -> frozenset[int] | None:
        """A cause among what's left; None where that doesn't fail."""
        known = next((cause for cause in self._causes if not cause & off), None)
        if known is not None:
            return known
        left = sorted(self._all - off)
        if not self.fails(self._all - off):
            return None
        found = smallest_failing(
            len(left),
            lambda places: self.fails(frozenset(left[place] for place in places)),
            tries=self._most,
            more=lambda: self.tries < self._most,
        )
        cause = frozenset(left[place] for place in found.places)
        self._causes.append(cause)
        if not found.exact:
            raise _EnoughError
        return cause

    def result(self, *, exact: bool) -> Isolated:
        """What's known so far; causes that hold another one aren't smallest."""
        causes = (cause for cause in self._causes if not any(other < cause for other in self._causes))
        return Isolated(tuple(causes), tuple(self._heals), self.tries, exact)
