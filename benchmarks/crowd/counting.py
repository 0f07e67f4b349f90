"""Messages, bytes and requests to the exchange a job, with three workers, and what more machines make of them.

`python -m benchmarks.crowd.counting --targets 20 --networks 1000`
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
from distributed.scheduler import heartbeat_interval

from benchmarks.crowd.counted import counts
from benchmarks.crowd.loopback import loopback
from benchmarks.crowd.targets import audit_of
from conrepair.application.config.load import parse_config
from conrepair.application.engine.place import jobs_run_at
from conrepair.application.pipeline.audit import run_and_write
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_crowd.executor import CrowdPlace, crowd_at
from conrepair_lab.campaigns.generating import GenerationRequest, generate
from conrepair_lab.generate.wishes import Wishes

_PORT, _WORKERS, _IDLE_SECONDS = 8801, 3, 20.0
_SLOTS, _JOB_SECONDS = 16, 10.0
_MACHINES = (100, 1000)


def main() -> None:
    """Print what was counted, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=20)
    parser.add_argument("--networks", type=int, default=1000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(_measured(asked, Path(name)), indent=2))


def _measured(asked: argparse.Namespace, room: Path) -> dict[str, Any]:
    preloads = ("conrepair_crowd.worker", "benchmarks.crowd.counted")
    (models := room / "models").mkdir()
    audit = audit_of(models, asked.targets) | {"output": str(room / "out")}
    request = GenerationRequest(Wishes(nodes=10), count=asked.networks, seed=5)

    def audited() -> None:
        run_and_write(parse_config(audit, "audit.json"), models, quiet=True)

    def generated() -> None:
        with ProgressDisplay(quiet=True) as display:
            generate(request, room / "networks", display)

    with (
        loopback(room, _PORT, workers=_WORKERS, preloads=preloads) as (address, _),
        crowd_at(address, str(room / "exchange")) as place,
        jobs_run_at(place),
    ):
        while len(place.cluster.workers) < _WORKERS:
            time.sleep(0.5)
        idle = _counted(place, lambda: time.sleep(_IDLE_SECONDS), {})
        told = {"audit": _counted(place, audited, idle), "generate": _counted(place, generated, idle)}
        known = len(msgpack.packb(dict(place.cluster.asked()), default=str)) / _WORKERS
    beat = idle["scheduler and workers"]["messages"] / idle["seconds"] / _WORKERS
    return {
        "messages a second of a worker with nothing to do": round(beat, 2),
        "bytes that the scheduler says of a worker": round(known),
        "measured": told,
        "calculated": {
            f"{count} machines": {name: _calculated(item, count, known, beat) for name, item in told.items()}
            for count in _MACHINES
        },
        "load of the machine": os.getloadavg()[0],
    }


def _counted(place: CrowdPlace, work: Callable[[], None], idle: Mapping[str, Any]) -> dict[str, Any]:
    """What work sends, and asks the exchange for, without what would have been sent anyway: in all, and a job."""
    before, jobs, begun = _now(place), _jobs(place), time.monotonic()
    work()
    after, seconds = _now(place), time.monotonic() - begun
    did = _jobs(place) - jobs
    told: dict[str, Any] = {"jobs": did, "seconds": round(seconds, 1)}
    for who, numbers in after.items():
        anyway = {name: count * seconds / idle["seconds"] for name, count in idle.get(who, {}).items()}
        spent = {name: count - before[who].get(name, 0) - anyway.get(name, 0) for name, count in numbers.items()}
        told[who] = {name: round(count) for name, count in spent.items()}
        told[f"{who}, a job"] = {name: round(count / did, 2) for name, count in spent.items()} if did else {}
    return told


def _now(place: CrowdPlace) -> dict[str, dict[str, int]]:
    """Counts of the client, and of all others together."""
    client = place.cluster._client()
    others = [client.run_on_scheduler(counts), *client.run(counts).values()]
    names = {name for each in others for name in each}
    return {
        "client": counts(),
        "scheduler and workers": {name: sum(e.get(name, 0) for e in others) for name in names},
    }


def _jobs(place: CrowdPlace) -> int:
    return sum(machine.done for machine in place.standing().machines)


def _calculated(measured: Mapping[str, Any], machines: int, known: float, beat: float) -> dict[str, float]:
    """What so many machines make of it, each with some slots, and jobs that take a while.

    Workers say that they're there the less often the more there are. The client asks every two seconds which.
    """
    rate = machines * _SLOTS / _JOB_SECONDS
    each = {who: measured[f"{who}, a job"] for who in ("client", "scheduler and workers")}
    both = {name: sum(item.get(name, 0) for item in each.values()) for name in ("asked", "put", "fetched")}
    beats = machines * beat * heartbeat_interval(_WORKERS) / heartbeat_interval(machines)
    return {
        "jobs a second": rate,
        "messages a second, of jobs": round(rate * sum(item["messages"] for item in each.values())),
        "messages a second, of heartbeats": round(beats),
        "MB a second": round(rate * sum(item["bytes"] for item in each.values()) / 1e6, 1),
        "MB a second, of what the client asks of workers": round(known * machines / 2 / 1e6, 2),
        "requests to the exchange a second": round(rate * sum(both.values())),
    }


if __name__ == "__main__":
    main()
