"""Minimizers of libraries: CMA-ES by the package cma, SciPy's differential evolution and dual annealing.

SciPy's plan by the evaluations that there will be.
"""

from __future__ import annotations

import warnings
from typing import NoReturn

import numpy as np

from conrepair_lab.tracing.search.search import Asking

_DIAGONAL_ABOVE = 200  # coordinates; a full matrix costs more than an evaluation from there on
_STEP = 0.5


def covariance_matrix(ask: Asking, size: int, seed: int) -> NoReturn:
    """Evolution with an adapted covariance matrix, started again from elsewhere where it has converged."""
    with warnings.catch_warnings(action="ignore"):  # it says that it can't draw
        import cma
    generator = np.random.default_rng(seed)
    options = {
        "bounds": [-1, 1],
        "randn": lambda *sizes: generator.standard_normal(sizes),
        "seed": np.nan,  # the generator is seeded; NumPy's own stays as it is
        "verbose": -9,
        "CMA_diagonal": size > _DIAGONAL_ABOVE,
    }
    point = np.zeros(size)
    while True:
        strategy = cma.CMAEvolutionStrategy(point, _STEP, options)
        while not strategy.stop():
            points = strategy.ask()
            strategy.tell(points, [*-ask(np.array(points))])
        point = generator.uniform(-1, 1, size)


_ROWS = (20, 50)  # of a population; SciPy's own, 15 for each coordinate, are more than most budgets
_GENERATIONS = 10  # at least
_WARMTH = 10.0  # scores are powers of ten of an error; from SciPy's own, 5230, none of these budgets cools


def differential(ask: Asking, size: int, seed: int, evaluations: int) -> NoReturn:
    """Differential evolution."""
    from scipy.optimize import differential_evolution

    generator = np.random.default_rng(seed)
    rows = int(np.clip(evaluations // _GENERATIONS, *_ROWS))
    while True:
        differential_evolution(
            lambda columns: -ask(columns.T),
            [(-1, 1)] * size,
            init=generator.uniform(-1, 1, (rows, size)),
            rng=generator,
            vectorized=True,
            updating="deferred",
            polish=False,
            tol=0,
            maxiter=evaluations,
        )


def annealing(ask: Asking, size: int, seed: int, evaluations: int) -> NoReturn:
    """Dual annealing, without its local search, which takes slopes of rounding errors."""
    from scipy.optimize import dual_annealing

    generator = np.random.default_rng(seed)
    while True:
        dual_annealing(
            lambda point: -float(ask(point[np.newaxis])[0]),
            [(-1, 1)] * size,
            rng=generator,
            initial_temp=_WARMTH,
            no_local_search=True,
            maxiter=max(1, evaluations // (2 * size)),
            maxfun=evaluations,
        )
