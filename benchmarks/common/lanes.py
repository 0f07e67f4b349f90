"""Jobs, two side by side in warm workers; a crash is a result."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from conrepair.ground.runtime.processes.workers import Job, Outcome, Workers

__all__ = ["run_all"]

Key = TypeVar("Key")


def run_all(workers: Workers, jobs: Iterable[tuple[Key, Job]]) -> Iterator[tuple[Key, Outcome]]:
    """Run jobs in their order on whichever worker is idle; results come as they are ready."""
    waiting = iter(jobs)
    running: dict[concurrent.futures.Future[Any], tuple[Key, Job, Any]] = {}
    exhausted = False
    while True:
        while not exhausted and (lane := workers.idle_lane(frozenset())) is not None:
            entry = next(waiting, None)
            if entry is None:
                exhausted = True
                break
            key, job = entry
            lane = workers.idle_lane(job.needs, job.reach) or lane
            job.folder.mkdir(parents=True, exist_ok=True)
            running[workers.start(lane, job)] = key, job, lane
        if not running:
            return
        done, _ = concurrent.futures.wait(
            running, timeout=workers.watch_seconds, return_when=concurrent.futures.FIRST_COMPLETED
        )
        workers.stop_oversized()
        for future in done:
            key, job, lane = running.pop(future)
            yield key, workers.outcome(lane, job, future)
