"""The interface of all search methods, and the loop that drives them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from conrepair.ground.operators.record import Array

__all__ = ["FAILED", "Answers", "Array", "Evaluate", "Found", "Search", "run"]

Evaluate = Callable[[Array], Array]
"""From points [count, size] to scores [count]; the higher, the further apart the two sides are."""

Answers = Callable[[Array], Sequence[Sequence[Array]]]
"""From points to what one side gives for each: the outputs of the network."""

FAILED = -1e9
"""The score of what couldn't be evaluated (NaN); below all others."""


class Search(Protocol):
    """A method that looks for points of the cube from -1 to 1 with high scores.

    The same seed gives the same candidates, if the same counts are asked for and the same scores told.
    """

    def candidates(self, count: int) -> Array:
        """At least one and at most `count` points to evaluate, [count, size]."""
        ...

    def told(self, candidates: Array, scores: Array) -> None:
        """Learn the scores [count] of all candidates that were given last."""
        return

    def close(self) -> None:
        """End; nothing of it goes on."""
        return


@dataclass
class Found:
    """The result of a search: the best point, its score, and the history of best scores."""

    point: Array
    score: float = -np.inf
    evaluations: int = 0
    history: list[tuple[int, float]] = field(default_factory=list)


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
        search: The method; it's closed afterwards.
        evaluate: Scores of points.
        evaluations: The most that are made.
        seconds: After which no more are begun.
        enough: A score with which the search ends.
        flat: Evaluations after which it ends where all scores have been the same.
        at_once: The most points that are evaluated together.
    """
    end, found, lowest = time.monotonic() + seconds, Found(np.zeros(0)), np.inf
    try:
        while found.evaluations < evaluations and found.score < enough:
            if found.evaluations and time.monotonic() >= end:
                break
            if found.evaluations >= flat and found.score == lowest:
                break
            points = search.candidates(min(at_once, evaluations - found.evaluations))
            scores = np.asarray(evaluate(points), float)
            scores = np.where(np.isnan(scores), FAILED, scores)
            search.told(points, scores)
            lowest = min(lowest, scores.min())
            for place in np.flatnonzero(scores > found.score):
                if scores[place] > found.score:
                    found.point, found.score = points[place].copy(), float(scores[place])
                    found.history.append((found.evaluations + int(place) + 1, found.score))
            found.evaluations += len(scores)
    finally:
        search.close()
    return found
