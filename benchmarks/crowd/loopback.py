"""A scheduler and workers on loopback, for what's measured here."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

__all__ = ["loopback"]


@contextlib.contextmanager
def loopback(
    room: Path,
    port: int,
    *,
    workers: int,
    threads: int = 1,
    preloads: tuple[str, ...] = (),
    own: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start them, and end them behind the block.

    Args:
        room: Folder of the workers.
        port: Of the scheduler.
        workers: How many.
        threads: Of each.
        preloads: Modules of workers, and of the scheduler where they're named `counted`.
        own: Variables of theirs.

    Yields:
        The scheduler's address, and the processes: it and the workers.
    """
    address = f"tcp://127.0.0.1:{port}"
    counted = [word for name in preloads if name.endswith("counted") for word in ("--preload", name)]
    words = ["--host", "tcp://127.0.0.1", "--port", str(port), "--no-dashboard", *counted]
    started = [_started("scheduler", words, own or {})]
    words = [address, "--nthreads", str(threads), "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
    words += [word for name in preloads for word in ("--preload", name)]
    for number in range(workers):
        place = ["--name", f"w{number}", "--local-directory", str(room / f"w{number}")]
        started.append(_started("worker", [*words, *place], own or {}))
    try:
        yield address, started
    finally:
        for process in started:
            process.kill()
            process.wait()


def _started(what: str, words: Sequence[str], own: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *words]
    return subprocess.Popen(command, env=os.environ | own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
