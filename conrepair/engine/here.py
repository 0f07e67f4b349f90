"""Run tasks in this process, one behind the other: the stages of work that is one job itself."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from conrepair.engine.job_table import JOBS
from conrepair.engine.scheduler import Result, Task, blocked, entries_of, not_stored, ready, refused
from conrepair.runtime.errors import ConrepairError
from conrepair.runtime.store import Entry
from conrepair.runtime.worker_process import called, describe_exception
from conrepair.runtime.workers import Failure, words_since

__all__ = ["Here"]


class Here:
    """Does what a `Scheduler` does without a store and without workers: each task is a call.

    Args:
        folder: Of the job that this is; each task gets one in it.

    Attributes:
        results: By the task's name.
        seconds: Spent, by the kind of task, and by parts of it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.results: dict[str, Result] = {}
        self.seconds: dict[str, float] = defaultdict(float)

    def run(
        self,
        tasks: Sequence[Task],
        *,
        advance: Callable[[str], None] = lambda _: None,
        show: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Run tasks one at a time, each behind those that it depends on; their results go to `results`.

        Args:
            tasks: In any order; they may depend on tasks of earlier calls.
            advance: Called with the name of each finished task.
            show: Not called.
        """
        waiting = list(tasks)
        while waiting:
            task = next(task for task in waiting if ready(task, self.results))
            waiting.remove(task)
            self.results[task.name] = blocked(task, self.results) or self._done(task)
            advance(task.name)

    def take_stored(self, tasks: Sequence[Task], otherwise: str) -> None:
        """Settle tasks by results of earlier runs, of which there are none.

        Args:
            tasks: Whose results are missing.
            otherwise: What to say of them.
        """
        self.results |= {task.name: not_stored(otherwise) for task in tasks}

    def _done(self, task: Task) -> Result:
        entries = entries_of(task, self.results)
        started, words = time.perf_counter(), words_since(self._folder)
        folder = self._folder / str(len(self.results))
        try:
            payload = task.payload(entries)
            task.prepare()
        except ConrepairError as error:
            return refused(error)
        folder.mkdir()
        try:
            value = json.loads(json.dumps(called(task.kind, payload, folder, JOBS), allow_nan=False))
        # The boundary of a job: whatever third-party code raises is its result.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            sys.stdout.flush()
            return Result(failure=Failure(**describe_exception(error, folder), last_words=words()))
        seconds = time.perf_counter() - started
        for part, spent in {task.kind: seconds, **task.parts(value)}.items():
            self.seconds[part] += spent
        return Result(Entry(folder, value), seconds=seconds)
