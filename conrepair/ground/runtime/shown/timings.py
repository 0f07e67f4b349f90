"""Where the time of a command went: each job's, and what lies before, between and behind them."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

_STAT_START = 19  # of /proc/PID/stat behind the name: when the process began, in ticks since the machine did


@dataclass
class _Kind:
    """Jobs of a sort.

    Attributes:
        count: How many were done.
        waited: Seconds from handing them out to having their results: with the start of a worker, and its imports.
        worked: Seconds that they say they took.
        parts: Of that, by part of the work.
    """

    count: int = 0
    waited: float = 0.0
    worked: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)


class Timings:
    """The times that were recorded.

    Attributes:
        kinds: By the name of the job, in the order in which they were first done.
        recalled: How many jobs weren't done again, by name.
    """

    def __init__(self) -> None:
        self.kinds: dict[str, _Kind] = {}
        self.recalled: Counter[str] = Counter()
        self._began = time.perf_counter() - _seconds_of_process()
        self._jobs: list[tuple[float, float]] = []

    def add(self, kind: str, begun: float, worked: float, parts: Mapping[str, float]) -> None:
        """Add a job that has just ended.

        Args:
            kind: Its name.
            begun: When it was handed out, on the clock of `time.perf_counter`.
            worked: Seconds that it says it took.
            parts: Of these, by part of the work.
        """
        item = self.kinds.setdefault(kind, _Kind())
        ended = time.perf_counter()
        self._jobs.append((begun, ended))
        item.count += 1
        item.waited += ended - begun
        item.worked += worked
        for name, seconds in parts.items():
            item.parts[name] = item.parts.get(name, 0.0) + seconds

    def text(self) -> str:
        """As a table; jobs that ran side by side count each."""
        now = time.perf_counter()
        rows: list[tuple[str, float | None, float | None]] = []
        if self._jobs:
            first, last = min(begun for begun, _ in self._jobs), max(ended for _, ended in self._jobs)
            rows.append(("before the first job", first - self._began, None))
        for kind, item in self.kinds.items():
            rows.append((_counted(kind, item.count), item.waited, item.worked))
            rows += [(f"  {name}", seconds, None) for name, seconds in item.parts.items()]
        if self._jobs:
            between, reached = 0.0, first
            for begun, ended in sorted(self._jobs):  # some run side by side
                between, reached = between + max(begun - reached, 0.0), max(reached, ended)
            rows += [("between jobs", between, None), ("behind the last job", now - last, None)]
        rows += [(f"{_counted(kind, count)}, from the cache", None, None) for kind, count in self.recalled.items()]
        rows.append(("total", now - self._began, None))
        width = max(len(name) for name, _, _ in rows)
        lines = [f"{'time':{width}}  seconds  in the job"]
        for name, seconds, worked in rows:
            spent = "" if seconds is None else f"  {seconds:7.2f}"
            lines.append(f"{name:{width}}{spent}{'' if worked is None else f'  {worked:10.2f}'}".rstrip())
        return "\n".join(lines)


def _counted(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind} ({count})"


_CURRENT: ContextVar[Timings | None] = ContextVar("timings", default=None)


@contextlib.contextmanager
def recorded() -> Iterator[Timings]:
    """Record the jobs that are done meanwhile."""
    timings = Timings()
    token = _CURRENT.set(timings)
    try:
        yield timings
    finally:
        _CURRENT.reset(token)


def job_done(kind: str, begun: float, worked: float, parts: Mapping[str, float]) -> None:
    """Say that a job has ended; see `Timings.add`. Does nothing where nobody records."""
    if (timings := _CURRENT.get()) is not None:
        timings.add(kind, begun, worked, parts)


def job_recalled(kind: str) -> None:
    """Say that a job needed not be done: its result was stored."""
    if (timings := _CURRENT.get()) is not None:
        timings.recalled[kind] += 1


def _seconds_of_process() -> float:
    """How long this process has been there; 0 where the system doesn't say."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        uptime = float(Path("/proc/uptime").read_text(encoding="utf-8").split()[0])
    except OSError:
        return 0.0
    return max(uptime - int(fields[_STAT_START]) / os.sysconf("SC_CLK_TCK"), 0.0)
