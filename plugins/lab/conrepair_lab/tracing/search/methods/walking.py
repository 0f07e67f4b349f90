"""Points drawn at random, which every other method must beat; and one that walks.

The naive climber only goes up, and Metropolis' chain goes down at times.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from conrepair_lab.tracing.search.search import Asking

_STARTS = 10
_STEP, _SHARE = 0.3, 0.2  # of a coordinate's range, and of the coordinates


def randomly(ask: Asking, size: int, seed: int) -> NoReturn:
    """Uniform points of the cube; nothing is learned."""
    generator = np.random.default_rng(seed)
    while True:
        ask(generator.uniform(-1, 1, (ask.room, size)))


def walk(ask: Asking, size: int, seed: int, warmth: float) -> NoReturn:
    """A chain of points, each a small change of the one before, from the best of a few.

    Args:
        ask: For scores.
        size: Of points.
        seed: What is drawn follows from it.
        warmth: How far down a step usually may go, in scores; 0: never.
    """
    generator, tried, now, known = np.random.default_rng(seed), 0, np.zeros(size), -np.inf
    while True:
        if tried < _STARTS:
            points, reach = generator.uniform(-1, 1, (min(ask.room, _STARTS - tried), size)), 0.0
        else:
            changed = generator.random(size) < _SHARE
            steps = generator.normal(0, _STEP, size) * changed
            points, reach = np.clip(now + steps, -1, 1)[np.newaxis], warmth
        for point, score in zip(points, ask(points), strict=True):
            tried += 1
            if score >= known - reach * generator.exponential():
                now, known = point, score
