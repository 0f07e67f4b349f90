"""SciPy's differential evolution and dual annealing; both plan by the evaluations that there will be."""

from __future__ import annotations

import numpy as np

from conrepair.tracing.search.methods.callback import Ask, Callback

__all__ = ["annealing", "differential"]

_ROWS = (20, 50)  # of a population; SciPy's own, 15 for each coordinate, are more than most budgets
_GENERATIONS = 10  # at least
_WARMTH = 10.0  # scores are powers of ten of an error; from SciPy's own, 5230, none of these budgets cools


def differential(size: int, seed: int, evaluations: int) -> Callback:
    """Differential evolution."""
    generator = np.random.default_rng(seed)
    rows = int(np.clip(evaluations // _GENERATIONS, *_ROWS))

    def minimize(ask: Ask) -> None:
        from scipy.optimize import differential_evolution

        differential_evolution(
            lambda columns: ask(columns.T),
            [(-1, 1)] * size,
            init=generator.uniform(-1, 1, (rows, size)),
            rng=generator,
            vectorized=True,
            updating="deferred",
            polish=False,
            tol=0,
            maxiter=evaluations,
        )

    return Callback(minimize)


def annealing(size: int, seed: int, evaluations: int) -> Callback:
    """Dual annealing, without its local search, which takes slopes of rounding errors."""
    generator = np.random.default_rng(seed)

    def minimize(ask: Ask) -> None:
        from scipy.optimize import dual_annealing

        dual_annealing(
            lambda point: float(ask(point[np.newaxis])[0]),
            [(-1, 1)] * size,
            rng=generator,
            initial_temp=_WARMTH,
            no_local_search=True,
            maxiter=max(1, evaluations // (2 * size)),
            maxfun=evaluations,
        )

    return Callback(minimize)
