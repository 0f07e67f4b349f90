"""Points drawn at random, which every other method must beat; and one that walks.

The naive climber only goes up, and Metropolis' chain goes down at times.
"""

from __future__ import annotations

import numpy as np

from conrepair_lab.tracing.search.search import Array, Search

_STARTS = 10
_STEP, _SHARE = 0.3, 0.2  # of a coordinate's range, and of the coordinates


class Random(Search):
    """Uniform points of the cube; nothing is learned."""

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._generator = size, np.random.default_rng(seed)

    def candidates(self, count: int) -> Array:
        """Points that were never looked at."""
        return self._generator.uniform(-1, 1, (count, self._size))


class Walk(Search):
    """A chain of points, each a small change of the one before, from the best of a few."""

    def __init__(self, size: int, seed: int, warmth: float) -> None:
        """Nothing is evaluated yet.

        Args:
            size: Of points.
            seed: What is drawn follows from it.
            warmth: How far down a step usually may go, in scores; 0: never.
        """
        self._generator, self._warmth = np.random.default_rng(seed), warmth
        self._size, self._tried = size, 0
        self._point, self._score = np.zeros(size), -np.inf

    def candidates(self, count: int) -> Array:
        """The next point."""
        if self._tried < _STARTS:
            return self._generator.uniform(-1, 1, (min(count, _STARTS - self._tried), self._size))
        changed = self._generator.random(self._size) < _SHARE
        steps = self._generator.normal(0, _STEP, self._size) * changed
        return np.clip(self._point + steps, -1, 1)[np.newaxis]

    def told(self, candidates: Array, scores: Array) -> None:
        """Go to the point, or stay."""
        warmth = self._warmth if self._tried >= _STARTS else 0
        for point, score in zip(candidates, scores, strict=True):
            self._tried += 1
            if score >= self._score - warmth * self._generator.exponential():
                self._point, self._score = point, score
