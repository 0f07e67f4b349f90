"""Bisection: the shortest part of a list with which something still fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Reduced:
    """The part of a list that a reduction left.

    Attributes:
        places: Those with which it fails, in order.
        tries: How often it was asked.
        exact: Whether it fails with none of them left out; False where no more could be asked.
    """

    places: tuple[int, ...]
    tries: int
    exact: bool


class _EnoughError(Exception):
    """No more may be asked."""


def smallest_failing(
    count: int, fails: Callable[[Sequence[int]], bool], *, tries: int, more: Callable[[], bool] = lambda: True
) -> Reduced:
    """Reduce a list, all of which fails.

    First the shortest beginning, then the shortest end of that, both by halving, as if one thing alone were to
    blame; then what is left by delta debugging (ddmin of Zeller and Hildebrandt, "Simplifying and Isolating
    Failure-Inducing Input", 2002), which needs no such assumption.

    Args:
        count: Length of the list.
        fails: Whether it fails with those at some places alone, given in order.
        tries: How often that may be asked.
        more: Whether it may be asked once more.
    """
    search = _Bisection(count, fails, tries, more)
    try:
        search.shorten()
        search.thin_out()
    except _EnoughError:
        return Reduced(tuple(search.left), search.tries, exact=False)
    return Reduced(tuple(search.left), search.tries, exact=True)


def fewest_that_heal(things: Sequence[str], heals: Callable[[Sequence[str]], bool], tries: int) -> Reduced:
    """Find the fewest things that have to be otherwise, without looking into the system.

    They are optimizations that are off, or operators of a network in another form, or with more digits. PLiner (Guo
    et al., "pLiner: Isolating Lines of Floating-Point Code for Compiler-Induced Variability", 2020) computes regions
    of a program in a wider type, halves those that heal, and refines what's left. Regions of a network are operators
    that follow one another; between those that are wide nothing is rounded.

    Args:
        things: That can be otherwise, in the order in which they come.
        heals: Whether a deviation is gone where some of them are.
        tries: How often that may be asked.

    Returns:
        Their places; none where all of them together don't heal.
    """
    if not things or tries < 1 or not heals(things):
        return Reduced((), min(len(things), tries, 1), exact=tries > 0)
    found = smallest_failing(len(things), lambda places: heals([things[place] for place in places]), tries=tries - 1)
    return Reduced(found.places, found.tries + 1, found.exact)


class _Bisection:
    """Keeps the shortest list that is known to fail."""

    def __init__(
        self, count: int, fails: Callable[[Sequence[int]], bool], most: int, more: Callable[[], bool]
    ) -> None:
        self.left: list[int] = list(range(count))
        self.tries = 0
        self._fails, self._most, self._more = fails, most, more

    def _try(self, *choices: list[int]) -> bool:
        """Whether one of them fails; the first that does is kept."""
        for places in choices:
            if self.tries >= self._most or not self._more():
                raise _EnoughError
            self.tries += 1
            if self._fails(places):
                self.left = places
                return True
        return False

    def shorten(self) -> None:
        """Cut off the end, then the beginning."""
        whole, passing = self.left, 0
        while len(self.left) - passing > 1:
            middle = (len(self.left) + passing) // 2
            if not self._try(whole[:middle]):
                passing = middle
        whole, passing = self.left, len(self.left)
        begin = 0
        while passing - begin > 1:
            middle = (begin + passing) // 2
            if self._try(whole[middle:]):
                begin = middle
            else:
                passing = middle

    def thin_out(self) -> None:
        """Leave out parts, finer and finer, until no single thing can be left out."""
        parts = 2
        while len(self.left) > 1:
            parts = min(parts, len(self.left))
            whole = self.left
            bounds = [len(whole) * part // parts for part in range(parts + 1)]
            pieces = [whole[begin:end] for begin, end in itertools.pairwise(bounds)]
            if parts == 2 and self._try(*pieces):
                continue
            if parts > 2 and self._try(
                *([place for place in whole if place not in piece] for piece in map(set, pieces))
            ):
                parts = max(parts - 1, 2)
                continue
            if parts == len(whole):
                return
            parts *= 2
