"""Minimizers of libraries: CMA-ES by the package cma, SciPy's differential evolution and dual annealing.

SciPy's plan by the evaluations that there will be. They call a function, which is turned into candidates that are
asked for: each runs in a thread, and only while the asker waits for it, never both at once: all stays deterministic.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from queue import SimpleQueue

import numpy as np

from conrepair_lab.tracing.search.search import Array, Search

_DIAGONAL_ABOVE = 200  # coordinates; a full matrix costs more than an evaluation from there on
_STEP = 0.5


_Ask = Callable[[Array], Array]
"""From points [count, size] to costs [count]."""


class _Ended(BaseException):
    """Ends a minimizer from inside; no library catches it by its `except Exception`."""


class Callback(Search):
    """A minimizer, given what asks for costs; it's called again, from elsewhere, when it ends by itself."""

    def __init__(self, minimize: Callable[[_Ask], object]) -> None:
        self._minimize = minimize
        self._points: SimpleQueue[Array | BaseException] = SimpleQueue()
        self._costs: SimpleQueue[Array | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._open, self._known = np.zeros((0, 0)), np.zeros(0)

    def candidates(self, count: int) -> Array:
        """The next of the points for which the minimizer asks."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        if len(self._known) == len(self._open):
            asked = self._points.get()
            if isinstance(asked, BaseException):
                raise asked
            self._open, self._known = asked, np.zeros(0)
        return self._open[len(self._known) : len(self._known) + count]

    def told(self, candidates: Array, scores: Array) -> None:
        """Hand the costs on once all are known."""
        self._known = np.append(self._known, -scores)
        if len(self._known) == len(self._open):
            self._costs.put(self._known)

    def close(self) -> None:
        """End the thread, and wait until it has."""
        if self._thread is not None:
            self._costs.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        try:
            while True:
                self._minimize(self._ask)
        except _Ended:
            return
        except BaseException as error:  # noqa: BLE001  (raised again where candidates are asked for)
            self._points.put(error)

    def _ask(self, points: Array) -> Array:
        self._points.put(points)
        costs = self._costs.get()
        if costs is None:
            raise _Ended
        return costs


def covariance_matrix(size: int, seed: int) -> Callback:
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

    def minimize(ask: _Ask) -> None:
        point = np.zeros(size)
        while True:
            strategy = cma.CMAEvolutionStrategy(point, _STEP, options)
            while not strategy.stop():
                points = strategy.ask()
                strategy.tell(points, [*ask(np.array(points))])
            point = generator.uniform(-1, 1, size)

    return Callback(minimize)


_ROWS = (20, 50)  # of a population; SciPy's own, 15 for each coordinate, are more than most budgets
_GENERATIONS = 10  # at least
_WARMTH = 10.0  # scores are powers of ten of an error; from SciPy's own, 5230, none of these budgets cools


def differential(size: int, seed: int, evaluations: int) -> Callback:
    """Differential evolution."""
    generator = np.random.default_rng(seed)
    rows = int(np.clip(evaluations // _GENERATIONS, *_ROWS))

    def minimize(ask: _Ask) -> None:
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

    def minimize(ask: _Ask) -> None:
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
