"""Many slots, and jobs that only wait: what the client, the scheduler and the exchange have to do for each.

`python -m benchmarks.crowd.waiting --threads 250 --workers 4 --jobs 3000 --seconds 20`
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.crowd.loopback import loopback
from benchmarks.crowd.waiting_jobs import SECONDS
from conrepair.application.engine.job_table import JOBS
from conrepair.ground.runtime.processes.workers import Job, Success, Workers
from conrepair_crowd.blobs import Blobs
from conrepair_crowd.cluster import Cluster
from conrepair_crowd.executor import Crowd

_PORT = 8799
_MODEL = 100_000  # bytes of the file that all jobs read


def main() -> None:
    """Print what was measured, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, number in (("threads", 250), ("workers", 4), ("jobs", 3000), ("seconds", 20)):
        parser.add_argument(f"--{name}", type=int, default=number)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(_measured(asked, Path(name)), indent=2))


def _measured(asked: argparse.Namespace, room: Path) -> dict[str, Any]:
    own, waits = {SECONDS: str(asked.seconds)}, ("benchmarks.crowd.waiting_jobs",)
    many = loopback(room, _PORT, workers=asked.workers, threads=asked.threads, preloads=waits, own=own)
    with many as (address, started), Cluster(address) as cluster, Workers(1, jobs=JOBS) as here:
        while len(cluster.workers) < asked.workers:
            time.sleep(0.5)
        return _given(Crowd(cluster, Blobs(str(room / "exchange")), here, None), asked, room, started)


def _given(crowd: Crowd, asked: argparse.Namespace, room: Path, started: list[Any]) -> dict[str, Any]:
    (room / "model").write_bytes(os.urandom(_MODEL))
    before, begun, cpu = [_cpu(item.pid) for item in started], time.monotonic(), time.process_time()
    running: dict[concurrent.futures.Future[Any], tuple[Any, Job]] = {}
    given, done, most = 0, 0, 0
    while done < asked.jobs:
        while given < asked.jobs and (lane := crowd.idle_lane(frozenset())) is not None:
            (folder := room / f"job-{given}").mkdir()
            job = Job("describe", {"model": {"path": str(room / "model")}, "number": given}, folder)
            running[crowd.start(lane, job)] = lane, job
            given += 1
        most = max(most, len(running))
        ended, _ = concurrent.futures.wait(running, 0.1, concurrent.futures.FIRST_COMPLETED)
        for future in ended:
            lane, job = running.pop(future)
            if not isinstance(outcome := crowd.outcome(lane, job, future), Success):
                raise TypeError(str(outcome))
            if (job.folder / "result").read_text() != str(job.payload["number"]):
                raise ValueError("a result is another's")
            done += 1
    seconds = time.monotonic() - begun
    spent = [_cpu(item.pid) - first for item, first in zip(started, before, strict=True)]
    slots = asked.threads * asked.workers
    return {
        "slots": slots,
        "most given at once": most,
        "jobs": done,
        "seconds": round(seconds, 1),
        "seconds with no cost at all": -(-done // slots) * asked.seconds,
        "jobs per second": round(done / seconds, 1),
        "processor ms a job": {
            "client": round(1000 * (time.process_time() - cpu) / done, 2),
            "scheduler": round(1000 * spent[0] / done, 2),
            "workers": round(1000 * sum(spent[1:]) / done, 2),
        },
        "bytes a job": {name: round(size / done) for name, size in crowd.moved.items()},
        "load of the machine": os.getloadavg()[0],
    }


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
