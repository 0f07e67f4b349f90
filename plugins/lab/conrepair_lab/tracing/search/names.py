"""Names of search methods and objectives, which commands know before anything is imported."""

from __future__ import annotations

from typing import Literal

MethodName = Literal["mega", "random", "climb", "mcmc", "differential", "annealing", "cmaes", "conditioning"]
ObjectiveName = Literal["guide", "mean", "largest", "ulps", "steps", "answers", "flip"]
