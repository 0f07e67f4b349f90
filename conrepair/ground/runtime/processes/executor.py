"""Where jobs run: what a scheduler asks of it, and the simplest one, this process."""

from __future__ import annotations

import concurrent.futures
import os
import time
import warnings
from collections.abc import Mapping
from typing import Any, Protocol

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.handing_on import forget
from conrepair.ground.runtime.processes.confinement import CONFINED
from conrepair.ground.runtime.processes.worker_process import called, describe_exception
from conrepair.ground.runtime.processes.workers import Failure, Job, Outcome, Success
from conrepair.ground.runtime.typed import plain
from conrepair.ground.runtime.words import complain


class Executor(Protocol):
    """A place where jobs run; only plain jobs travel there."""

    memory_gb: float | None

    @property
    def watch_seconds(self) -> float:
        """How often to call `stop_oversized`."""

    def idle_lane(
        self,
        needs: frozenset[str],
        reach: str = CONFINED,
        environment: Mapping[str, str] | None = None,
        *,
        alone: bool = False,
    ) -> Any:
        """A slot for a job that needs these libraries, in a process of that reach and environment.

        Args:
            needs: Frameworks that it imports.
            reach: How far it may reach.
            environment: As of `Job`.
            alone: Whether nothing else may run on its machine meanwhile.

        Returns:
            None where none is free.
        """

    def start(self, lane: Any, job: Job) -> concurrent.futures.Future[Any]:
        """Run a job in a slot; returns a future for `outcome`."""

    def outcome(self, lane: Any, job: Job, future: Any) -> Outcome:
        """Wait for the future of `start` and say how the job ended; frees the slot."""

    def stop_oversized(self) -> None:
        """Stop the jobs that hold more memory than they may."""


class InProcess:
    """Runs each job at once, in this process: for debuggers, for objects, and where every library is trusted.

    A library that crashes takes the process along, nothing is stopped for its time or memory, and code in a file is
    kept from nothing (docs/security.md): it's for objects, and for files of one's own.
    """

    memory_gb: float | None = None
    watch_seconds = 0.0

    def __init__(self, jobs: Mapping[str, str], words: str = "") -> None:
        """Run what is in a table.

        Args:
            jobs: "package.module:function" by the jobs' names.
            words: To say before the first one, on standard error.
        """
        self._jobs, self._words = jobs, words

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        forget()

    def idle_lane(self, *_: Any, alone: bool = False) -> InProcess:
        """It's always free: jobs run one behind the other."""
        return self

    def start(self, _: Any, job: Job) -> concurrent.futures.Future[Any]:
        """Run a job to its end."""
        if self._words:
            complain(self._words)
            self._words = ""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        started = time.perf_counter()
        try:
            _check_environment(job.environment)
            with warnings.catch_warnings():  # of a worker's libraries, they go to its log
                warnings.simplefilter("ignore")
                value = plain(called(job.function, dict(job.payload), job.folder, self._jobs))
        # The same boundary as a worker's: whatever third-party code raises is the job's result.
        except Exception as error:  # noqa: BLE001
            future.set_result(Failure(**describe_exception(error, job.folder)))
        else:
            future.set_result(Success(value, time.perf_counter() - started))
        return future

    def outcome(self, _: Any, __: Job, future: Any) -> Outcome:
        """How the job ended."""
        result: Outcome = future.result()
        return result

    def stop_oversized(self) -> None:
        """Nothing runs while this is asked."""


def _check_environment(wanted: Mapping[str, str]) -> None:
    """Refuse a job that needs another environment than this process has: libraries read theirs when they start."""
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        listed = " ".join(f"{name}='{value}'" for name, value in wanted.items())
        raise UsageError(f"this needs a worker process, or that this one is started with {listed}")
