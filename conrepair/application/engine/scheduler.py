"""Run tasks that depend on one another: from the store when they were done before, else in workers."""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conrepair.application.engine.fingerprint import code_fingerprint, plugin_code
from conrepair.application.engine.job_table import reach_of
from conrepair.application.engine.task import Result, Task, blocked, entries_of, not_stored, refused
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.files.journal import Journal, blame, forget_tried
from conrepair.ground.runtime.files.store import Entry, Store, job_key
from conrepair.ground.runtime.processes.deadline import allowed
from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.processes.workers import (
    ENDED,
    MEMORY,
    OVERSIZED,
    STORAGE,
    Failure,
    Job,
    Success,
)
from conrepair.ground.runtime.shown.heartbeat import begun, ended, far
from conrepair.ground.runtime.shown.progress import UNSHOWN, Stage
from conrepair.ground.runtime.shown.timings import job_done, job_recalled
from conrepair.ground.runtime.typed import plain

_STOPPED = "stopped"
_DIED_KINDS = {MEMORY, "crash"}
_DEATHS = 3  # of one task's workers, behind each of which it goes on


class NotStoredError(Exception):
    """A task would have to be run, by a scheduler that only recalls."""


class Scheduler:
    """Runs tasks on workers, through a store.

    Args:
        store: Where results are kept.
        workers: Where they are made.
        reuse: Whether stored results are taken.
        recall: Run nothing. Then results whose files were released will do as well.
        prepare: Called with a task in this process before its job starts, where its result isn't stored; what it
            raises is the task's failure.
    """

    def __init__(
        self,
        store: Store,
        workers: Executor,
        *,
        reuse: bool = True,
        recall: bool = False,
        prepare: Callable[[Task], None] = lambda _: None,
    ) -> None:
        self._store, self._prepare = store, prepare
        self._workers = workers
        self._reuse = reuse
        self._recall = recall
        self.results: dict[str, Result] = {}
        self._deaths: Counter[str] = Counter()
        self._alone: set[str] = set()
        self._whose = str(os.getpid())

    def run(self, tasks: Sequence[Task], stage: Stage = UNSHOWN) -> None:
        """Run tasks, as many at a time as there are workers for; their results go to `results`.

        One that's stopped as all together take too much memory is run again, alone.

        Args:
            tasks: In any order; they may depend on tasks of earlier calls.
            stage: Told of each finished task, and from time to time of what a running one has done so far.

        Raises:
            NotStoredError: if the scheduler only recalls, and a task isn't stored.
            StorageError: if a result can't be kept, or a store that others use can't be written.
        """
        running: dict[concurrent.futures.Future[Any], _Running] = {}
        try:
            self._run(list(tasks), running, stage)
        finally:
            for unfinished in running.values():
                ended(unfinished.doing)
                unfinished.scratch.__exit__(None, None, None)

    def take_stored(self, tasks: Sequence[Task], otherwise: str) -> None:
        """Settle tasks from the store alone.

        Args:
            tasks: Each behind those that it depends on.
            otherwise: What to say of one that isn't stored.
        """
        for task in tasks:
            settled = blocked(task, self.results)
            if settled is None:
                work = self._work(task)
                settled = work if isinstance(work, Result) else self._stored(task, work[1])
            self.results[task.name] = settled or not_stored(otherwise)

    def _run(
        self, waiting: list[Task], running: dict[concurrent.futures.Future[Any], _Running], stage: Stage
    ) -> None:
        prepared: dict[str, tuple[dict[str, Any], str]] = {}  # payloads, and the keys of results
        while waiting or running:
            for task in list(waiting):
                if not _ready(task, self.results):
                    continue
                settled = blocked(task, self.results)
                if settled is None:
                    work = prepared.get(task.name) or self._work(task)
                    if isinstance(work, Result):
                        settled = work
                    else:
                        prepared[task.name] = work
                        settled = self._stored(task, work[1])
                        if settled is not None:
                            job_recalled(task.kind)
                if settled is None:
                    payload, key = prepared[task.name]
                    if self._recall:
                        raise NotStoredError(task.name)
                    if any((other.task.kind, other.key) == (task.kind, key) for other in running.values()):
                        continue
                    alone = task.alone or task.name in self._alone
                    lane = self._workers.idle_lane(task.needs, _reach(task), task.environment, alone=alone)
                    if lane is None:
                        continue
                    try:
                        self._prepare(task)
                    except ConrepairError as error:
                        settled = refused(error)
                    else:
                        started = self._start(task, payload, key, lane)
                        running[started.future] = started
                        for other in running.values() if len(running) > 1 else ():
                            other.beside = True
                if settled is not None:
                    self.results[task.name] = settled
                    stage.advance(task.name)
                waiting.remove(task)
            if not running:
                if waiting and not any(_ready(task, self.results) for task in waiting):
                    raise RuntimeError(f"tasks wait for nothing: {[task.name for task in waiting]}")
                continue
            done, _ = concurrent.futures.wait(
                running, timeout=self._workers.watch_seconds, return_when=concurrent.futures.FIRST_COMPLETED
            )
            self._workers.stop_oversized()
            for item in running.values():
                if said := item.task.progress(item.job.folder):
                    stage.show(f"{item.task.name}: {said}")
                    far(said, number=item.doing)
            for future in done:
                finished = running.pop(future)
                result = self._finish(finished)
                if result is None:
                    waiting.append(finished.task)
                    continue
                self.results[finished.task.name] = result
                stage.advance(finished.task.name)

    def _stored(self, task: Task, key: str) -> Result | None:
        """The result of an earlier run, or of an equal task of this one."""
        if not self._reuse:
            return None
        entry = self._store.get(task.kind, key, released=self._recall)
        if entry is None and task.keep_stopped:
            entry = self._store.get(_STOPPED, self._stopped_key(task, key))
        if entry is None:
            return None
        if task.continues and _is_interrupted(entry.result.get("value")):
            self._store.discard(task.kind, key)
            return None
        return _kept(entry, reused=True)

    def _work(self, task: Task) -> tuple[dict[str, Any], str] | Result:
        """The payload and the key of the result, or the failure of a task that can't be given its payload."""
        try:
            payload = plain(task.payload(entries_of(task, self.results)))
        except ConrepairError as error:
            return refused(error)
        known = json.loads(json.dumps(payload), object_hook=_without_path)
        others = plugin_code(json.dumps([task.kind, *task.needs, known]))
        return payload, job_key(task.kind, known, code_fingerprint(task.kind) + others)

    def _stopped_key(self, task: Task, key: str) -> str:
        """The key of a failure that other limits might avoid."""
        limits = {"seconds": task.timeout, "memory_gb": self._workers.memory_gb}
        return job_key(task.kind, {"job": key, "limits": limits}, "")

    def _start(self, task: Task, payload: dict[str, Any], key: str, lane: Any) -> _Running:
        scratch = self._store.scratch()
        folder = scratch.__enter__()
        if task.continues:
            journal = self._store.journal(task.kind, key)
            if not self._reuse and not self._deaths[task.name]:
                Journal.remove(journal)
            journal.mkdir(exist_ok=True)
            forget_tried(journal, self._whose)
            payload = payload | {"journal": str(journal), "whose": self._whose}
        job = Job(task.kind, payload, folder, task.needs, allowed(task.timeout), _reach(task), task.environment)
        started = time.perf_counter()
        doing = begun(task.name if task.name.endswith(task.kind) else f"{task.name}, {task.kind}")
        return _Running(task, job, key, lane, self._workers.start(lane, job), scratch, started, doing)

    def _finish(self, running: _Running) -> Result | None:
        """What a task came to; None where it's to go on."""
        job, kind = running.job, running.task.kind
        try:
            outcome = self._workers.outcome(running.lane, job, running.future)
            ended(running.doing)
            self._store.check(outcome.message if isinstance(outcome, Failure) and outcome.kind == STORAGE else "")
            if isinstance(outcome, Success):
                job_done(kind, running.started, outcome.seconds, running.task.parts(outcome.value))
                record = {"value": outcome.value, "seconds": outcome.seconds}
                stored = self._store.put(kind, running.key, job.folder, record)
                if running.task.continues and not _is_interrupted(outcome.value):
                    Journal.remove(self._store.journal(kind, running.key))
                return _kept(stored, reused=False)  # another run that was faster may have kept other files than ours
            if self._is_to_be_alone(running, outcome) or (running.task.continues and self._goes_on(running, outcome)):
                return None
            if outcome.repeatable and running.task.continues:
                Journal.remove(self._store.journal(kind, running.key))
            if outcome.repeatable and running.task.keep_failure:
                self._keep_failure(kind, running.key, job, outcome)
            elif outcome.kind in ENDED and running.task.keep_stopped and job.timeout == running.task.timeout:
                self._keep_failure(_STOPPED, self._stopped_key(running.task, running.key), job, outcome)
            return Result(failure=outcome)
        finally:
            running.scratch.__exit__(None, None, None)

    def _is_to_be_alone(self, running: _Running, failure: Failure) -> bool:
        """Whether memory ran out that others had a part of, so that the task may have enough by itself."""
        own_limit = self._workers.memory_gb is not None and failure.error_type == OVERSIZED
        if failure.kind != MEMORY or own_limit or not running.beside:
            return False
        self._alone.add(running.task.name)
        return True

    def _goes_on(self, running: _Running, failure: Failure) -> bool:
        """Whether a worker has died of what its journal names, which is left out from now on."""
        name = running.task.name
        if failure.kind not in _DIED_KINDS or self._deaths[name] >= _DEATHS:
            return False
        self._deaths[name] += 1
        return blame(self._store.journal(running.task.kind, running.key), self._whose)

    def _keep_failure(self, kind: str, key: str, job: Job, failure: Failure) -> None:
        shutil.rmtree(job.folder, ignore_errors=True)  # what it left half-made
        job.folder.mkdir()
        self._store.put(kind, key, job.folder, {"failure": asdict(failure)})


def _kept(entry: Entry, *, reused: bool) -> Result:
    """How a task ended that the store has."""
    if "failure" in entry.result:
        return Result(failure=Failure(**entry.result["failure"]), reused=True)
    return Result(Entry(entry.folder, entry.result["value"]), reused=reused, seconds=entry.result["seconds"])


def _ready(task: Task, results: Mapping[str, Result]) -> bool:
    """Whether all that a task depends on is settled."""
    return all(name in results for name in task.depends)


def _reach(task: Task) -> str:
    """How far a task's job reaches."""
    return reach_of(task.kind, device=task.device)


def _is_interrupted(value: Any) -> bool:
    """Whether a job ended early, with what it had."""
    return isinstance(value, Mapping) and bool(value.get("interrupted"))


def _without_path(value: dict[str, Any]) -> dict[str, Any]:
    """Keep of a path only the suffix where its hash stands beside it: where a file is doesn't matter."""
    return value | {"path": Path(value["path"]).suffix} if value.get("sha256") and "path" in value else value


@dataclass
class _Running:
    task: Task
    job: Job
    key: str  # of the result
    lane: Any
    future: Any
    scratch: Any
    started: float
    doing: int
    beside: bool = False  # another one, at any time
