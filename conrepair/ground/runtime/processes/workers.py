"""Warm worker processes with time limits, whose crashes are results.

Third-party native code (converters, runtimes) runs here and nowhere else. A worker imports a framework once
and keeps it; jobs are steered to the idle worker that has already imported what they need.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.errors import ExitCode, UsageError
from conrepair.ground.runtime.files.scratch import SCRATCH, scratch_folder
from conrepair.ground.runtime.files.whole import HASHES, full_disk, in_place, size_below, storage_error
from conrepair.ground.runtime.processes.confinement import CONFINED
from conrepair.ground.runtime.processes.forks.template import FORKS, Template
from conrepair.ground.runtime.processes.memory import free_for_jobs, held_alone, resident
from conrepair.ground.runtime.processes.process import ALONE, POSSIBLE, WorkerDied, WorkerProcess, checked_environment
from conrepair.ground.runtime.processes.worker_process import COLOUR, NO_DEVICE, NO_LIBRARY, STORAGE
from conrepair.ground.runtime.typed import plain

__all__ = [
    "ENDED",
    "MEMORY",
    "NO_DEVICE",
    "NO_LIBRARY",
    "OVERSIZED",
    "STORAGE",
    "Failure",
    "FailureKind",
    "Job",
    "Lane",
    "Outcome",
    "Success",
    "Workers",
    "words_since",
]

MEMORY, OVERSIZED = "memory", "MemoryLimit"
"""Kind of a failure for want of memory, and its type where a worker was stopped for what it held."""

ENDED = frozenset({"crash", MEMORY, "timeout"})
"""Kinds of failure of a worker that ended, by itself or since it was ended."""

FailureKind = str
"""One of "exception", "refused" (one of our own errors), "crash", "timeout", "memory", "storage", "changed" (a file
that it read was changed meanwhile), "device" (one isn't there, or is lost), "library" (one isn't installed)."""

_LAST_WORDS_LINES = 15
_LAST_WORDS_CHARACTERS = 3000
_PYTHON_CRASH = "Fatal Python error:"
_CRASH_LINES = 6
_SIGNALS = {
    words: getattr(signal, name)
    for words, name in {
        "Segmentation fault": "SIGSEGV",
        "Aborted": "SIGABRT",
        "Bus error": "SIGBUS",
        "Floating-point exception": "SIGFPE",
        "Floating point exception": "SIGFPE",
        "Illegal instruction": "SIGILL",
    }.items()
    if hasattr(signal, name)  # not all on Windows
}  # as faulthandler calls them
_START_UP = re.compile(
    r"^[IW]\d{4} \d\d:|^WARNING: All log messages before absl|oneDNN custom operations|TF_ENABLE_ONEDNN_OPTS"
    r"|could not find cuda|cudart_stub|cpu_feature_guard|To enable the following instructions"
    r"|TensorSpec\(shape=\(\), dtype=tf.resource|Created TensorFlow Lite XNNPACK delegate",
    re.IGNORECASE,
)
_MEMORY_WATCH_SECONDS = 0.1
_MOST_KEPT = 1 << 30  # bytes in a worker's own folder, from which on it's replaced before its next job
_STALE_SHARE = 0.5  # of its memory limit, from which on an idle worker is replaced before its next job


@dataclass(frozen=True)
class Job:
    """One call in a worker process.

    Attributes:
        function: Its name in the table of the executor; that function takes (payload, folder) and returns a
            JSON-able mapping.
        payload: JSON-able argument.
        folder: Where the function writes its files.
        needs: Frameworks it imports; a worker that has them is preferred.
        timeout: Seconds after which the worker is killed.
        reach: How far it may reach (`conrepair.ground.runtime.processes.confinement`).
        environment: Variables that its process is started with, besides the usual ones; which there may be is said by
            `conrepair.ground.runtime.processes.process`.
    """

    function: str
    payload: Mapping[str, Any]
    folder: Path
    needs: frozenset[str] = frozenset()
    timeout: float = 600.0
    reach: str = CONFINED
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Success:
    """What a job returned, and how long it took in the worker, in seconds."""

    value: Any
    seconds: float


@dataclass(frozen=True)
class Failure:
    """How a job failed.

    Attributes:
        kind: See `FailureKind`.
        error_type: Name of the exception or signal.
        message: The tool's own words.
        last_words: The end of what the job wrote to its standard output and error.
        explanation: Ours: what happened and what to do.
        exit_code: The process exit code that this failure asks for.
        traceback: For the log file; empty for a crash.
    """

    kind: FailureKind
    error_type: str
    message: str
    last_words: str = ""
    explanation: str = ""
    exit_code: int = int(ExitCode.EXECUTION)
    traceback: str = ""

    @property
    def repeatable(self) -> bool:
        """Whether the same job would fail in the same way again (so that the failure may be stored)."""
        return self.kind in {"exception", "refused"}

    def __str__(self) -> str:
        """The failure in one line."""
        message = self.message.strip().splitlines()
        first = next((line.strip() for line in message if line.strip()), "")
        if self.kind in {"refused", "changed", STORAGE, NO_DEVICE, NO_LIBRARY}:
            return self.message.strip()
        return f"{self.error_type}: {first}" if first else self.error_type


Outcome = Success | Failure


@dataclass
class Lane:
    """One worker process slot, with the frameworks that its process has imported.

    Attributes:
        setup: For its process, which is made when it's first used.
        imported: What jobs so far needed.
        busy: Whether it has a job.
        alone: Whether nothing else may run beside that.
        process: The worker.
        oversized: GiB that the worker held when it was stopped for it; else 0.
        folder: Of the worker's own, for temporary files and for what compilers keep.
        template: What a worker is forked from that has to be made; None: it's a fresh interpreter.
    """

    setup: Mapping[str, Any]
    imported: set[str] = field(default_factory=set)
    busy: bool = False
    alone: bool = False
    process: WorkerProcess | None = None
    oversized: float = 0.0
    folder: Path | None = None
    template: Template | None = None

    def measured(self, memory: Callable[[int], int]) -> int:
        """Memory of the worker in bytes; 0 where there is none, or the system doesn't say.

        Args:
            memory: What measures it, by the number of a process.
        """
        return 0 if self.process is None or not self.process.active else memory(self.process.pid)

    def schedule(self, request: Sequence[Any], timeout: float, temporary: Path) -> concurrent.futures.Future[Any]:
        """Hand a job to the worker; returns its future.

        Args:
            request: The job.
            timeout: In seconds.
            temporary: Where a worker that has to be made gets its folder for temporary files.
        """
        if self.process is not None and not self.process.active:
            self.close()
        if self.process is None:
            self.folder = own = Path(tempfile.mkdtemp(dir=temporary))
            setup = {**self.setup, "folders": [*self.setup["folders"], str(own)]}
            self.process = WorkerProcess(setup, own, self.template)
        return self.process.call(request, timeout)

    def close(self) -> None:
        """End the worker, and all that it started."""
        self.imported.clear()
        if self.process is not None:
            self.process.close()
            self.process = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    @property
    def overfull(self) -> bool:
        """Whether compilers have kept more in the worker's own folder than is left there."""
        try:
            return self.folder is not None and size_below(self.folder) > _MOST_KEPT
        except (OSError, RecursionError):  # what works there also removes, or it was led astray
            return True


class Workers:
    """A fixed number of worker processes that are busy at a time, started when first needed.

    Jobs that reach further than others have processes of their own, and so have those of another environment. Use as
    a context manager; leaving it stops them.

    Args:
        count: How many.
        module_folders: Where a user's own modules are looked for, after Python's own places.
        jobs: Which jobs there are: "package.module:function" by name, and no others run.
        memory_gb: A worker that holds more (resident, in GiB) is stopped by `stop_oversized`; None: all together may
            hold what's free when the first job starts, less a reserve; where they hold more, the largest is stopped.
        folders: Where jobs write, beside a folder for temporary files that each worker has to itself. None: the
            system's folder for temporary files and the current one, for benchmarks and tests.
        imports: Modules that workers have from the start, by the framework that their jobs need, those of all by "":
            workers are forked from one process that has imported them. None: each is a fresh interpreter.
    """

    def __init__(
        self,
        count: int,
        module_folders: tuple[str, ...] = (),
        *,
        jobs: Mapping[str, str],
        memory_gb: float | None = None,
        folders: Sequence[Path] | None = None,
        imports: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.memory_gb = memory_gb
        self._free: int | None = None
        self._count = count
        self._setup = {
            "jobs": dict(jobs),
            "modules": list(module_folders),
            "folders": [str(Path(folder).resolve()) for folder in folders or (Path(tempfile.gettempdir()), Path())],
        }
        self._lanes: dict[tuple[str, frozenset[tuple[str, str]]], list[Lane]] = {}  # those used last stand behind
        self._stack = contextlib.ExitStack()
        self._temporary: Path | None = None
        self._imports = imports
        self._template: Template | None = None

    def __enter__(self) -> Workers:
        if not POSSIBLE:
            raise UsageError(
                "audits need worker processes: run them on Linux or macOS. Verbs of two files run in "
                "one process here."
            )
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:
            for lane in self._all():
                lane.close()
        self._temporary = self._template = None

    def idle_lane(
        self,
        needs: frozenset[str],
        reach: str = CONFINED,
        environment: Mapping[str, str] | None = None,
        *,
        alone: bool = False,
    ) -> Lane | None:
        """The idle worker of that reach and environment that has imported most of the needs, least of the rest."""
        variables = checked_environment(environment or {})
        setup = {**self._setup, "reach": reach, "environment": variables}
        key = reach, frozenset(variables.items())
        lanes = self._lanes.pop(key, None) or [Lane(setup) for _ in range(self._count)]
        self._close_others(key[1])
        self._lanes[key] = lanes
        busy = [lane for lane in self._all() if lane.busy]
        if len(busy) >= (1 if alone else self._count) or any(lane.alone for lane in busy):
            return None
        idle = [lane for lane in lanes if not lane.busy]
        chosen = max(idle, key=lambda lane: (len(needs & lane.imported), -len(lane.imported)))
        chosen.alone = alone
        return chosen

    def _close_others(self, wanted: frozenset[tuple[str, str]]) -> None:
        """End idle workers of environments that aren't wanted now, but for as many as may be busy at a time."""
        idle = [
            lane
            for (_, environment), lanes in self._lanes.items()
            if environment and environment != wanted
            for lane in lanes
            if lane.process is not None and not lane.busy
        ]
        for lane in idle[: -self._count]:
            lane.close()

    def _all(self) -> list[Lane]:
        return [lane for lanes in self._lanes.values() for lane in lanes]

    @property
    def watch_seconds(self) -> float:
        """How often to call `stop_oversized`."""
        return _MEMORY_WATCH_SECONDS

    def stop_oversized(self) -> None:
        """Stop the jobs whose worker holds more memory than it may, or the largest where all together do."""
        if self.memory_gb is None:
            self._stop_largest()
        for lane in self._all():
            held = lane.measured(resident) / 2**30
            if self.memory_gb is not None and lane.busy and lane.process is not None and held > self.memory_gb:
                lane.oversized = held
                lane.process.end()

    def _stop_largest(self) -> None:
        held = [(lane.measured(held_alone), lane) for lane in self._all()]
        if self._free is None or sum(size for size, _ in held) <= self._free:
            return
        size, largest = max(held, key=lambda item: item[0])
        if not largest.busy:
            largest.close()  # what earlier jobs left in memory
        elif largest.process is not None and not largest.oversized:
            largest.oversized = size / 2**30
            largest.process.end()

    def start(self, lane: Lane, job: Job) -> Any:
        """Run `job` on `lane`; returns a future for `outcome`."""
        stale = self.memory_gb is not None and lane.measured(resident) / 2**30 > _STALE_SHARE * self.memory_gb
        if stale or lane.overfull:
            lane.close()  # what earlier jobs left is not this job's to answer for
        if self._free is None:
            self._free = free_for_jobs()
        request = (job.function, plain(job.payload), str(job.folder), str(_log_path(job.folder)), dict(HASHES))
        place = Path(tempfile.gettempdir())
        with storage_error(place):
            if self._temporary is None:
                self._temporary = self._stack.enter_context(scratch_folder(place, SCRATCH))
            lane.template = self._template_of(lane, job.needs, self._temporary)
            future = lane.schedule(request, job.timeout, self._temporary)
        lane.busy = True
        lane.oversized = 0.0
        lane.imported |= job.needs
        return future

    def _template_of(self, lane: Lane, needs: frozenset[str], temporary: Path) -> Template | None:
        """What a worker is forked from, started when one is first; None where it's a fresh interpreter.

        That's where it reaches further than what it would be forked from, or where libraries are to find another
        environment than they did there.
        """
        if self._imports is None or not FORKS or lane.setup["reach"] != CONFINED or lane.setup["environment"]:
            return None
        if self._template is not None and not self._template.active:
            self._imports = None  # what ended it would end another: a fresh interpreter fails alone
            return None
        if self._template is None:
            modules = [module for need in ("", *sorted(needs)) for module in self._imports.get(need, ())]
            folders = [*lane.setup["folders"], str(temporary)]
            self._template = Template(folders, modules, ALONE, temporary / "template.log")
            self._stack.callback(self._template.close)
        return self._template

    def outcome(self, lane: Lane, job: Job, future: Any) -> Outcome:
        """Wait for the future of `start` and say how the job ended; frees the lane."""
        try:
            kind, value = future.result()
        except TimeoutError:
            lane.imported.clear()
            return _timed_out(job)
        except WorkerDied as died:
            lane.imported.clear()
            if lane.oversized:
                return _oversized(job, lane.oversized, self.memory_gb, self._free)
            return _crashed(job, died.code, died.words)
        finally:
            lane.busy = False
        if kind == "success":
            return Success(**value)
        return Failure(**value, last_words=_last_words(job))

    def call(self, job: Job) -> Outcome:
        """Run one job and wait for it."""
        lane = self.idle_lane(job.needs, job.reach, job.environment)
        if lane is None:
            raise RuntimeError("no idle worker: `call` is for use outside a scheduler")
        future = self.start(lane, job)
        while not concurrent.futures.wait([future], self.watch_seconds).done:
            self.stop_oversized()
        return self.outcome(lane, job, future)


def _log_path(folder: Path) -> Path:
    return folder.with_name(folder.name + ".log")


def _last_words(job: Job) -> str:
    return _words(_log_path(job.folder), 0)


def words_since(folder: Path) -> Callable[[], str]:
    """What returns, later, the end of what a running job has printed from now on; "" where that goes elsewhere.

    Args:
        folder: Of the job.
    """
    path = _log_path(folder)
    start = path.stat().st_size if path.exists() else 0
    return lambda: _words(path, start)


def _words(path: Path, start: int) -> str:
    with contextlib.suppress(OSError), open(path, "rb", opener=in_place) as stream:
        stream.seek(max(start, path.lstat().st_size - 10 * _LAST_WORDS_CHARACTERS))
        return _end(stream.read(10 * _LAST_WORDS_CHARACTERS).decode("utf-8", errors="replace"))
    return ""


def _end(text: str) -> str:
    """The end of what was printed; after a crash, the first lines of what Python adds: innermost calls come first."""
    text, fatal, stack = text.partition(_PYTHON_CRASH)
    lines = _lines(text)[-_LAST_WORDS_LINES:] + _lines(fatal + stack)[:_CRASH_LINES]
    return "\n".join(lines)[-_LAST_WORDS_CHARACTERS:]


def _lines(text: str) -> list[str]:
    """Lines that say something, without colours and without what frameworks print at every start."""
    lines = [line.rstrip() for line in COLOUR.sub("", text).splitlines()]
    return [line for line in lines if line.strip() and not _START_UP.search(line)]


def _timed_out(job: Job) -> Failure:
    return Failure(
        kind="timeout",
        error_type="Timeout",
        message=f"stopped after {job.timeout:g} s",
        last_words=_last_words(job),
        explanation=(
            f"The job did not end within its limit of {job.timeout:g} s and was stopped. "
            "Raise --timeout, or `limits.seconds` in a configuration, if the model is large."
        ),
    )


def _oversized(job: Job, held: float, allowed: float | None, free: int | None) -> Failure:
    if allowed is not None:
        limit = f"{allowed:g} are allowed"
        words = (
            f"The worker process held more memory than its limit of {allowed:g} GiB and was stopped. Raise "
            "`limits.memory_gb` in the configuration, or lower `limits.workers` and `batch_size`."
        )
    else:
        limit = f"{(free or 0) / 2**30:.1f} were free for jobs"
        words = (
            "The worker process took what memory there was, and was stopped before the machine ran out of it. Close "
            "other programs, use a machine with more, or lower the batch size; `limits.memory_gb` in a configuration "
            "sets a limit of your own for each worker."
        )
    return Failure(
        kind=MEMORY,
        error_type=OVERSIZED,
        message=f"stopped at {held:.1f} GiB of memory, {limit}",
        last_words=_last_words(job),
        explanation=words,
    )


def _crashed(job: Job, exit_code: int | None, between: str = "") -> Failure:
    words = _last_words(job) or _end(between)
    if exit_code is None:
        # Who asks the system first is told; where that was somebody else, the worker's own words say it.
        exit_code = next((-number for said, number in _SIGNALS.items() if f"{_PYTHON_CRASH} {said}" in words), None)
    name = "unknown exit code" if exit_code is None else f"exit code {exit_code}"
    if exit_code is not None and exit_code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-exit_code).name
    if name == "SIGBUS" and (full := full_disk(job.folder.parent, Path(tempfile.gettempdir()))):
        return Failure(STORAGE, name, full, words)  # a file on it was mapped
    killed = name == "SIGKILL"
    return Failure(
        kind=MEMORY if killed else "crash",
        error_type=name,
        message=f"the worker process died ({name})",
        last_words=words,
        explanation=(
            "The worker process was killed, probably out of memory. Lower `workers` and `batch_size`."
            if killed
            else "Native code of the tool crashed the worker process; the audit went on without it. "
            "Report it to the tool's authors with the model of this step."
        ),
    )
