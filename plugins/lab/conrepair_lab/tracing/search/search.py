"""What all search methods ask for scores, and the budget that ends them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from conrepair.ground.operators.record import Array

__all__ = ["FAILED", "Answers", "Array", "Asking", "Evaluate", "Found", "Search", "run"]

Evaluate = Callable[[Array], Array]
"""From points [count, size] to scores [count]; the higher, the further apart the two sides are."""

Answers = Callable[[Array], Sequence[Sequence[Array]]]
"""From points to what one side gives for each: the outputs of the network."""

FAILED = -1e9
"""The score of what couldn't be evaluated (NaN); below all others."""


@dataclass
class Found:
    """The result of a search: the best point, its score, and the history of best scores."""

    point: Array
    score: float = -np.inf
    evaluations: int = 0
    history: list[tuple[int, float]] = field(default_factory=list)


class _EnoughError(BaseException):
    """Ends a search from inside; no library catches it by its `except Exception`."""


class Asking:
    """Scores for a method that asks for them, until the budget is used up: then asking doesn't return.

    Args:
        evaluate: Scores of points.
        evaluations: The most that are made.
        end: Time of the monotonic clock from which on no more are begun.
        enough: A score with which the search ends.
        flat: Evaluations after which it ends where all scores have been the same.
        at_once: The most points that are evaluated together.

    Attributes:
        found: What came of it so far.
    """

    def __init__(
        self, evaluate: Evaluate, evaluations: int, end: float, enough: float, flat: float, at_once: int
    ) -> None:
        self._evaluate, self._evaluations, self._end = evaluate, evaluations, end
        self._enough, self._flat, self._at_once = enough, flat, at_once
        self.found, self._lowest = Found(np.zeros(0)), np.inf

    @property
    def room(self) -> int:
        """How many points may be evaluated together now; at least one."""
        found = self.found
        late = found.evaluations > 0 and time.monotonic() >= self._end
        same = found.evaluations >= self._flat and found.score == self._lowest
        if found.evaluations >= self._evaluations or found.score >= self._enough or late or same:
            raise _EnoughError
        return min(self._at_once, self._evaluations - found.evaluations)

    def __call__(self, points: Array) -> Array:
        """The scores [count] of points [count, size]."""
        room, found = self.room, self.found
        if len(points) > room:
            return np.append(self(points[:room]), self(points[room:]))
        scores = np.asarray(self._evaluate(points), float)
        scores = np.where(np.isnan(scores), FAILED, scores)
        self._lowest = min(self._lowest, scores.min())
        for place in np.flatnonzero(scores > found.score):
            if scores[place] > found.score:
                found.point, found.score = points[place].copy(), float(scores[place])
                found.history.append((found.evaluations + int(place) + 1, found.score))
        found.evaluations += len(scores)
        return scores


Search = Callable[[Asking], NoReturn]
"""A method that looks for points of the cube from -1 to 1 with high scores as long as it may ask.

The same seed asks for the same points, if there's the same room and the same scores are given.
"""


def run(
    search: Search,
    evaluate: Evaluate,
    evaluations: int,
    seconds: float = np.inf,
    *,
    enough: float = np.inf,
    flat: float = np.inf,
    at_once: int = 16,
) -> Found:
    """Search until the budget is used up.

    Args:
        search: The method.
        evaluate: Scores of points.
        evaluations: The most that are made.
        seconds: After which no more are begun.
        enough: A score with which the search ends.
        flat: Evaluations after which it ends where all scores have been the same.
        at_once: The most points that are evaluated together.
    """
    asking = Asking(evaluate, evaluations, time.monotonic() + seconds, enough, flat, at_once)
    try:
        search(asking)
    except _EnoughError:
        return asking.found
