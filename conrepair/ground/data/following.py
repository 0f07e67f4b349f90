"""What can be reached from some things step by step."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Thing = TypeVar("Thing", bound=Hashable)


def reached(starts: Iterable[Thing], following: Callable[[Thing], Iterable[Thing]]) -> dict[Thing, None]:
    """Some things, what follows them, and so on: each once, as a dictionary that is in the order of their finding.

    Args:
        starts: Where to begin.
        following: What follows one; asked once of each.
    """
    found: dict[Thing, None] = {}
    waiting = list(starts)
    while waiting:
        if (thing := waiting.pop()) not in found:
            found[thing] = None
            waiting += following(thing)
    return found
