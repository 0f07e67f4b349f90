"""A process of its own for what may end it, or never come back."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

__all__ = ["Elsewhere", "EndedError"]

Result = TypeVar("Result")


class EndedError(Exception):
    """The process has ended, or was ended; the text is "crash" or "hang"."""


class Elsewhere:
    """A process that is started when something is to be done, and again after it has ended."""

    def __init__(self) -> None:
        self._pool: concurrent.futures.ProcessPoolExecutor | None = None

    def call(self, seconds: float | None, function: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """What a function returns there, or raises.

        Args:
            seconds: It may take so long; None for any time.
            function: Of a module.
            arguments: Its own.
            named: Its own.

        Raises:
            EndedError: if the process ends, or it takes too long.
        """
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
        pool = self._pool
        try:
            return pool.submit(function, *arguments, **named).result(seconds)
        except BrokenProcessPool as error:
            self._pool = None
            raise EndedError("crash") from error
        except concurrent.futures.TimeoutError as error:
            for process in list(pool._processes.values()):  # nothing public ends a task that runs
                process.kill()
            self._pool = None
            raise EndedError("hang") from error
