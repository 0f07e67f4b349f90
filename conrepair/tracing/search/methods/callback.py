"""Minimizers of libraries that call a function, turned into candidates that are asked for.

The minimizer runs in a thread, and only while the asker waits for it: never both at once, so all stays deterministic.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

import numpy as np

from conrepair.tracing.search.search import Array, Search

__all__ = ["Ask", "Callback"]

Ask = Callable[[Array], Array]
"""From points [count, size] to costs [count]."""


class _Ended(BaseException):
    """Ends a minimizer from inside; no library catches it by its `except Exception`."""


class Callback(Search):
    """A minimizer, given what asks for costs; it's called again, from elsewhere, when it ends by itself."""

    def __init__(self, minimize: Callable[[Ask], object]) -> None:
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
