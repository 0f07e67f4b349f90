"""Whether code in a file runs, however it's disguised: in workers that are confined, and in those that aren't.

    python -m benchmarks.containers [--formats FORMAT,...] [--count N] [--seed N] [--without-landlock]
                                    [--reach confined,open,in-process]

Each case is a file with code in it, of which some part says something else than the others: names, checksums, sizes,
order, doubles, what lies before, between and behind. It's described, loaded and called. Wrong is a mark that the code
left (a file outside of the worker's folders, or a variable of its process), an error that isn't conrepair's, and a
case that takes longer than 10 s. "in-process" is as `in_process=True` has it: no worker, nothing that confines.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.common.jobs import JOBS
from benchmarks.containers.canaries import FORMATS
from benchmarks.containers.kernel import leave_landlock_out
from benchmarks.containers.trial import trial
from conrepair.ground.runtime.processes.confinement import CONFINED, OPEN
from conrepair.ground.runtime.processes.workers import Failure, Job, Outcome, Success, Workers

_BATCH, _IN_PROCESS = 100, "in-process"
_SECONDS = 600.0


def main() -> int:
    """Do all cases and print the table; returns 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", default=",".join(FORMATS), help=f"Of {', '.join(FORMATS)}.")
    parser.add_argument("--count", type=int, default=10_000, help="Cases of each format.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reach", default=f"{CONFINED},{OPEN}", help="How far the workers reach.")
    parser.add_argument("--without-landlock", action="store_true", help="As on a kernel that has none.")
    options = parser.parse_args()
    if options.without_landlock:
        leave_landlock_out()
    print("| format | workers | cases | loaded | refused | ended | canaries | tracebacks | most memory | s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    wrong: list[str] = []
    for name in options.formats.split(","):
        for reach in options.reach.split(","):
            row, found = _of(name, reach, options.count, options.seed)
            print(row, flush=True)
            wrong += found
    print("\n".join(wrong))
    return int(bool(wrong))


def _of(name: str, reach: str, count: int, seed: int) -> tuple[str, list[str]]:
    started = time.perf_counter()
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    memory = 0
    with tempfile.TemporaryDirectory(prefix="conrepair-containers-") as scratch:
        place, outside = Path(scratch) / "jobs", Path(scratch) / "outside"
        place.mkdir()
        outside.mkdir()
        with Workers(1, jobs=JOBS, folders=(place,)) as workers:
            pending = [(first, min(_BATCH, count - first)) for first in range(0, count, _BATCH)]
            number = 0
            while pending:
                first, size = pending.pop(0)
                number += 1
                folder = place / str(number)
                folder.mkdir()
                payload = {"format": name, "seed": seed, "first": first, "count": size, "mark": str(outside / "mark")}
                if reach == _IN_PROCESS:
                    ended = _in_process(payload, folder)
                else:
                    job = Job("benchmarks.containers.trial:trial", payload, folder, timeout=_SECONDS, reach=reach)
                    ended = workers.call(job)
                if isinstance(ended, Success):
                    outcomes.update(ended.value["outcomes"])
                    wrong += ended.value["wrong"]
                    memory = max(memory, ended.value["memory"])
                elif size > 1:  # a library ended the process, or is at it for ever: which case?
                    pending = [(first + place, 1) for place in range(size)] + pending
                elif any(outside.iterdir()):
                    outcomes["canary"] += 1
                    wrong.append(f"{name}:{first}: canary in a process that ended")
                else:
                    outcomes["ended"] += 1
                    print(f"{name}:{first}: {ended}", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - started
    return (
        f"| {name} | {reach} | {count} | {outcomes['loaded']} | {outcomes['refused']} | {outcomes['ended']} "
        f"| {outcomes['canary']} | {outcomes['traceback']} | {memory / 2**20:.0f} MiB | {seconds:.0f} |"
    ), wrong


def _in_process(folder: Path, **payload: Any) -> Outcome:
    """Do cases in a process that nothing confines, as that of a person who calls the package in it."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answered, args=(theirs, payload, folder))
    process.start()
    theirs.close()
    try:
        value = ours.recv() if ours.poll(_SECONDS) else None
    except EOFError:  # a library ended the process
        value = None
    process.kill()
    process.join()
    if value is None:
        return Failure("crash", "ended", f"exit code {process.exitcode}")
    return Success(value, 0.0)


def _answered(answers: Connection, payload: dict[str, Any], folder: Path) -> None:
    answers.send(trial(folder, **payload))


if __name__ == "__main__":
    sys.exit(main())
