"""All methods of searching, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conrepair_lab.tracing.search.methods.mega import Conditioning, Mega
from conrepair_lab.tracing.search.methods.minimizers import annealing, covariance_matrix, differential
from conrepair_lab.tracing.search.methods.walking import randomly, walk
from conrepair_lab.tracing.search.search import Answers, Search
from conrepair_lab.tracing.search.space import Space

_WARMTH = 0.1  # powers of ten of an error

METHODS: Mapping[str, Callable[[Space, int, int, Answers], Search]] = {
    "annealing": lambda space, evaluations, seed, _: lambda ask: annealing(ask, space.size, seed, evaluations),
    "climb": lambda space, evaluations, seed, _: lambda ask: walk(ask, space.size, seed, warmth=0),
    "cmaes": lambda space, evaluations, seed, _: lambda ask: covariance_matrix(ask, space.size, seed),
    "conditioning": lambda space, evaluations, seed, answers: Conditioning(
        space.size, seed, evaluations, space.controls, answers
    ),
    "differential": lambda space, evaluations, seed, _: lambda ask: differential(ask, space.size, seed, evaluations),
    "mcmc": lambda space, evaluations, seed, _: lambda ask: walk(ask, space.size, seed, _WARMTH),
    "mega": lambda space, evaluations, seed, answers: Mega(space.size, seed, evaluations, space.controls, answers),
    "random": lambda space, evaluations, seed, _: lambda ask: randomly(ask, space.size, seed),
}
"""By name: from a space, the evaluations that are planned, a seed, and what one side gives for points."""
