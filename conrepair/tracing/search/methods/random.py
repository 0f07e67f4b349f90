"""Points drawn at random: what every other method must beat."""

from __future__ import annotations

import numpy as np

from conrepair.tracing.search.search import Array, Search

__all__ = ["Random"]


class Random(Search):
    """Uniform points of the cube; nothing is learned."""

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._generator = size, np.random.default_rng(seed)

    def candidates(self, count: int) -> Array:
        """Points that were never looked at."""
        return self._generator.uniform(-1, 1, (count, self._size))
