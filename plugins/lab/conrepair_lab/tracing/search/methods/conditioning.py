"""First where the network amplifies changes, then where its two sides differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from conrepair_lab.tracing.search.methods.crossing import Crossing, begun, numbers
from conrepair_lab.tracing.search.methods.mega import Mega
from conrepair_lab.tracing.search.search import Answers, Array, Asking

_STARTS = 12


class Conditioning(Mega):
    """MEGA from where one side's answers pass through zero, which is where they're conditioned worst.

    Half of the evaluations look for such passes; they need one side only, and are made before the first candidate.
    """

    def __init__(self, size: int, seed: int, evaluations: int, controls: Sequence[int], answers: Answers) -> None:
        super().__init__(size, seed, evaluations // 2, controls, answers)
        self._drawing = np.random.default_rng(seed)

    def __call__(self, ask: Asking) -> NoReturn:
        """Start near those that amplify most."""
        self.starts = self._passes()
        super().__call__(ask)

    def _passes(self) -> list[Array]:
        points = np.array([self.start() for _ in range(_STARTS)])
        answers, found = [numbers(outputs) for outputs in self._look(points)], list[Crossing]()
        for looks in range(_STARTS, self._evaluations):
            if not (found and found[-1].going):
                found += begun(looks % _STARTS, points, answers, self._drawing)
            if found and found[-1].going:
                point = found[-1].point()
                found[-1].told(point, self._look(point[np.newaxis])[0])
        return [crossing.nearest for crossing in found]
