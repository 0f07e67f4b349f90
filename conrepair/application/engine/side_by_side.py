"""Jobs side by side in workers, each one's end told at once: for many that depend on nothing and aren't stored."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Iterable
from typing import Any

from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.processes.workers import Job, Outcome, Success
from conrepair.ground.runtime.shown.timings import job_done


def run_side_by_side(
    workers: Executor, jobs: Iterable[Job], ended: Callable[[Job, Outcome], Job | None], meanwhile: Callable[[], None]
) -> None:
    """Run jobs, as many at a time as there are workers.

    Args:
        workers: Where.
        jobs: In order; taken when a worker is free.
        ended: Told how each ended; what it returns is run next.
        meanwhile: Called some ten times a second.
    """
    waiting, again = iter(jobs), list[Job]()
    running: dict[concurrent.futures.Future[Any], tuple[Any, Job, float]] = {}
    while True:
        while (job := again.pop() if again else next(waiting, None)) is not None:
            lane = workers.idle_lane(job.needs, job.reach, job.environment)
            if lane is None:
                again.append(job)
                break
            begun = time.perf_counter()
            running[workers.start(lane, job)] = (lane, job, begun)
        if not running:
            return
        done, _ = concurrent.futures.wait(running, workers.watch_seconds, concurrent.futures.FIRST_COMPLETED)
        workers.stop_oversized()
        for future in done:
            lane, job, begun = running.pop(future)
            outcome = workers.outcome(lane, job, future)
            job_done(job.function, begun, outcome.seconds if isinstance(outcome, Success) else 0.0, {})
            more = ended(job, outcome)
            if more is not None:
                again.append(more)
        meanwhile()
