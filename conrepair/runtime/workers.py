"""Warm worker processes with time limits, whose crashes are results.

Third-party native code (converters, runtimes) runs here and nowhere else. A worker imports a framework once
and keeps it; jobs are steered to the idle worker that has already imported what they need.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import json
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pebble

from conrepair.runtime.errors import (
    ConrepairError,
    DeviceError,
    ExitCode,
    MissingLibraryError,
    SourceChangedError,
    ToolCrashError,
    UsageError,
)
from conrepair.runtime.files import explain_write_error, full_disk
from conrepair.runtime.handing_on import handed_on
from conrepair.runtime.libraries import missing_library

__all__ = [
    "NO_DEVICE",
    "NO_LIBRARY",
    "STORAGE",
    "Failure",
    "FailureKind",
    "Job",
    "Lane",
    "Outcome",
    "Success",
    "Workers",
    "run_job",
]

FailureKind = str
"""One of "exception", "refused" (one of our own errors), "crash", "timeout", "memory", "storage", "changed" (a file
that it read was changed meanwhile), "device" (one isn't there, or is lost), "library" (one isn't installed)."""

NO_DEVICE = "device"
NO_LIBRARY = "library"
STORAGE = "storage"

_LAST_WORDS_LINES = 15
_LAST_WORDS_CHARACTERS = 3000
_PYTHON_CRASH = "Fatal Python error:"
_CRASH_LINES = 6
_SIGNALS = {
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Floating-point exception": signal.SIGFPE,
    "Floating point exception": signal.SIGFPE,
    "Illegal instruction": signal.SIGILL,
}  # as faulthandler calls them
_START_UP = re.compile(
    r"^[IW]\d{4} \d\d:|^WARNING: All log messages before absl|oneDNN custom operations|TF_ENABLE_ONEDNN_OPTS"
    r"|could not find cuda|cudart_stub|cpu_feature_guard|To enable the following instructions"
    r"|TensorSpec\(shape=\(\), dtype=tf.resource|Created TensorFlow Lite XNNPACK delegate",
    re.IGNORECASE,
)
_SIGNAL_WITH_PARENT = 1  # PR_SET_PDEATHSIG; Linux means the thread that started this process: the main one here
_WATCH_SECONDS = 0.5
_MEMORY_WATCH_SECONDS = 0.1
_STALE_SHARE = 0.5  # of its memory limit, from which on an idle worker is replaced before its next job
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


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
    """

    function: str
    payload: Mapping[str, Any]
    folder: Path
    needs: frozenset[str] = frozenset()
    timeout: float = 600.0


@dataclass(frozen=True)
class Success:
    """What a job returned, and how long it took in the worker, in seconds."""

    value: dict[str, Any]
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
    """One worker process slot: a pool of one, made when first used, with the frameworks it has imported.

    Attributes:
        pool: Of one process.
        imported: What jobs so far needed.
        busy: Whether it has a job.
        module_folders: Where a user's own modules are looked for.
        jobs: As of `Workers`.
        process: The worker's id, which it writes itself.
        oversized: GiB that the worker held when it was stopped for it; else 0.
    """

    pool: Any = None
    imported: set[str] = field(default_factory=set)
    busy: bool = False
    module_folders: tuple[str, ...] = ()
    jobs: Mapping[str, str] | None = None
    process: Any = None
    oversized: float = 0.0

    @property
    def memory(self) -> int:
        """Resident memory of the worker in bytes; 0 where there is none, or the system doesn't say."""
        if self.process is None or not self.process.value:
            return 0
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{self.process.value}/status").read_text(encoding="utf-8")
            status = dict(line.split(":", 1) for line in text.splitlines())
            if int(status["PPid"]) == os.getpid():  # else the worker is gone, and its id another process's
                return int(status.get("VmRSS", "0 kB").split()[0]) << 10
        return 0

    def schedule(self, arguments: tuple[Any, ...], timeout: float) -> Any:
        """Hand a job to the worker; returns its future."""
        if self.pool is not None and not self.pool.active:
            self.close(at_once=True)
            self.imported.clear()
        if self.pool is None:
            context = multiprocessing.get_context("spawn")
            self.process = context.RawValue("l", 0)
            self.pool = pebble.ProcessPool(
                max_workers=1,
                context=context,
                initializer=_initialize,
                initargs=(
                    self.module_folders,
                    os.getpid(),
                    self.process,
                    None if self.jobs is None else dict(self.jobs),
                ),
            )
        return self.pool.schedule(_run, args=arguments, timeout=timeout)

    def close(self, *, at_once: bool) -> None:
        """End the worker: when it's idle, or at once."""
        if self.pool is not None:
            if at_once:
                self.pool.stop()
            else:
                self.pool.close()
            self.pool.join()
            self.pool = None


class Workers:
    """A fixed number of worker processes, started when first needed.

    Use as a context manager; leaving it stops the processes.

    Args:
        count: How many.
        module_folders: Where a user's own modules are looked for, after Python's own places.
        jobs: Which jobs there are: "package.module:function" by name, and no others run. None: a job's name is that
            itself, for benchmarks and tests of workers with functions of their own.
        memory_gb: A worker that holds more (resident, in GiB) is stopped by `stop_oversized`; None: no bound.
    """

    def __init__(
        self,
        count: int,
        module_folders: tuple[str, ...] = (),
        *,
        jobs: Mapping[str, str] | None = None,
        memory_gb: float | None = None,
    ) -> None:
        self.memory_gb = memory_gb
        self._lanes = [Lane(module_folders=module_folders, jobs=jobs) for _ in range(count)]

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, error_type: object, *_: object) -> None:
        for lane in self._lanes:
            lane.close(at_once=error_type is not None)

    def idle_lane(self, needs: frozenset[str]) -> Lane | None:
        """The idle worker that has imported most of what is needed, and least of the rest."""
        idle = [lane for lane in self._lanes if not lane.busy]
        if not idle:
            return None
        return max(idle, key=lambda lane: (len(needs & lane.imported), -len(lane.imported)))

    @property
    def watch_seconds(self) -> float:
        """How often to call `stop_oversized`."""
        return _MEMORY_WATCH_SECONDS if self.memory_gb is not None else 1.0

    def stop_oversized(self) -> None:
        """Stop the jobs whose worker holds more memory than it may."""
        for lane in self._lanes:
            held = lane.memory / 2**30
            if self.memory_gb is not None and lane.busy and held > self.memory_gb:
                lane.oversized = held
                with contextlib.suppress(ProcessLookupError):
                    os.kill(lane.process.value, signal.SIGKILL)

    def start(self, lane: Lane, job: Job) -> Any:
        """Run `job` on `lane`; returns a future for `outcome`."""
        if self.memory_gb is not None and lane.memory / 2**30 > _STALE_SHARE * self.memory_gb:
            lane.close(at_once=True)  # what earlier jobs left in memory is not this job's to answer for
            lane.imported.clear()
        lane.busy = True
        lane.oversized = 0.0
        lane.imported |= job.needs
        arguments = (job.function, dict(job.payload), str(job.folder), str(_log_path(job)))
        return lane.schedule(arguments, job.timeout)

    def outcome(self, lane: Lane, job: Job, future: Any) -> Outcome:
        """Wait for the future of `start` and say how the job ended; frees the lane."""
        try:
            kind, value = future.result()
        except FutureTimeoutError:
            lane.imported.clear()
            return _timed_out(job)
        except pebble.ProcessExpired as error:
            lane.imported.clear()
            if lane.oversized and self.memory_gb is not None:
                return _oversized(job, lane.oversized, self.memory_gb)
            return _crashed(job, error.exitcode)
        except BrokenProcessPool:
            lane.imported.clear()
            return _crashed(job, None)
        finally:
            lane.busy = False
        if kind == "success":
            return Success(**value)
        return Failure(**value, last_words=_last_words(job))

    def call(self, job: Job) -> Outcome:
        """Run one job and wait for it."""
        lane = self.idle_lane(job.needs)
        if lane is None:
            raise RuntimeError("no idle worker: `call` is for use outside a scheduler")
        return self.outcome(lane, job, self.start(lane, job))


def _log_path(job: Job) -> Path:
    return job.folder.with_name(job.folder.name + ".log")


def _last_words(job: Job) -> str:
    path = _log_path(job)
    with contextlib.suppress(OSError), path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - 10 * _LAST_WORDS_CHARACTERS))
        text = stream.read().decode("utf-8", errors="replace")
        # After a crash Python adds where it was: long, and the innermost calls come first.
        text, fatal, stack = text.partition(_PYTHON_CRASH)
        lines = _lines(text)[-_LAST_WORDS_LINES:] + _lines(fatal + stack)[:_CRASH_LINES]
        return "\n".join(lines)[-_LAST_WORDS_CHARACTERS:]
    return ""


def _lines(text: str) -> list[str]:
    """Lines that say something, without colours and without what frameworks print at every start."""
    lines = [line.rstrip() for line in _COLOUR.sub("", text).splitlines()]
    return [line for line in lines if line.strip() and not _START_UP.search(line)]


def _timed_out(job: Job) -> Failure:
    return Failure(
        kind="timeout",
        error_type="Timeout",
        message=f"stopped after {job.timeout:g} s",
        last_words=_last_words(job),
        explanation=(
            f"The job did not end within its limit of {job.timeout:g} s and was stopped. "
            "Raise `limits.seconds` in the configuration if the model is large."
        ),
    )


def _oversized(job: Job, held: float, allowed: float) -> Failure:
    return Failure(
        kind="memory",
        error_type="MemoryLimit",
        message=f"stopped at {held:.1f} GiB of memory, {allowed:g} are allowed",
        last_words=_last_words(job),
        explanation=(
            f"The worker process held more memory than its limit of {allowed:g} GiB and was stopped. Raise "
            "`limits.memory_gb` in the configuration, or lower `limits.workers` and `batch_size`."
        ),
    )


def _crashed(job: Job, exit_code: int | None) -> Failure:
    words = _last_words(job)
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
        kind="memory" if killed else "crash",
        error_type=name,
        message=f"the worker process died ({name})",
        last_words=words,
        explanation=(
            "The worker process was killed, most likely because memory ran out. Close other programs, or "
            "lower `workers` and `batch_size`."
            if killed
            else "Native code of the tool crashed the worker process; the audit went on without it. "
            "Report it to the tool's authors with the model of this step."
        ),
    )


# --- inside the worker process ----------------------------------------------------------------------------


_jobs: dict[str, str] | None = None  # of this process


def _initialize(module_folders: tuple[str, ...], parent: int, process: Any, jobs: dict[str, str] | None) -> None:
    global _jobs
    _jobs = jobs
    process.value = os.getpid()
    _end_with(parent)
    sys.path.extend(folder for folder in module_folders if folder not in sys.path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's to handle
    # TensorFlow reads its log level from the environment of the process, at import.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Beside other programs, PyTorch's threads that spin while they wait take a core from those that they wait for.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    faulthandler.enable()
    # tqdm, which exporters use, would make a semaphore between processes that a terminated worker leaks.
    with contextlib.suppress(ImportError):
        importlib.import_module("tqdm.std").TqdmDefaultWriteLock.mp_lock = None


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, however that ended: nobody waits for its results."""
    if sys.platform == "linux":  # at once, even inside native code that holds Python's lock
        ctypes.CDLL(None).prctl(_SIGNAL_WITH_PARENT, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _run(function: str, payload: dict[str, Any], folder: str, log: str) -> tuple[str, dict[str, Any]]:
    return run_job(function, payload, folder, log, _jobs)


def run_job(
    function: str, payload: dict[str, Any], folder: str, log: str, jobs: Mapping[str, str] | None
) -> tuple[str, dict[str, Any]]:
    """Do a job in this process, and say how it ended.

    Args:
        function: Its name.
        payload: Its argument.
        folder: Where it writes.
        log: File that receives what is printed meanwhile.
        jobs: As of `Workers`.

    Returns:
        "success" or "failure", and the fields of the outcome.
    """
    with _output_to(Path(log)):
        started = time.perf_counter()
        try:
            value = json.loads(json.dumps(called(function, payload, Path(folder), jobs), allow_nan=False))
        # The boundary of the process: whatever the third-party code raised is the job's result.
        except BaseException as error:  # noqa: BLE001
            return "failure", describe_exception(error, Path(folder))
        return "success", {"value": value, "seconds": time.perf_counter() - started}


def called(name: str, payload: dict[str, Any], folder: Path, jobs: Mapping[str, str] | None) -> Any:
    """Do a job in this process.

    Args:
        name: Of the job.
        payload: Its argument.
        folder: Where it writes.
        jobs: As of `Workers`.

    Returns:
        What it returns.

    Raises:
        UsageError: if there's no job of that name.
    """
    if jobs is not None and name not in jobs:
        raise UsageError(f"there's no job {name!r}: executors run {', '.join(sorted(jobs))}, and nothing else")
    module, _, function = (name if jobs is None else jobs[name]).partition(":")
    with handed_on(name):
        return getattr(importlib.import_module(module), function)(payload, folder)


def describe_exception(error: BaseException, folder: Path) -> dict[str, Any]:
    """What the fields of a `Failure` say of an exception that a job raised.

    Args:
        error: What it raised.
        folder: Of the job.
    """
    error = missing_library(error) or error
    storage = explain_write_error(error, folder.parent, Path(tempfile.gettempdir()))
    result: dict[str, Any] = {
        "kind": "exception",
        "error_type": type(error).__name__,
        "message": _COLOUR.sub("", _words(error)).replace(f"{folder}/", ""),  # it's gone when somebody reads this
        "traceback": "".join(traceback.format_exception(error)),
    }
    if storage is not None:
        result |= {"kind": STORAGE, "message": storage}
    elif isinstance(error, SourceChangedError):
        result |= {"kind": "changed", "exit_code": int(error.exit_code)}
    elif isinstance(error, DeviceError):
        result |= {"kind": NO_DEVICE, "exit_code": int(error.exit_code)}
    elif isinstance(error, MissingLibraryError):
        result |= {"kind": NO_LIBRARY, "exit_code": int(error.exit_code)}
    elif isinstance(error, ToolCrashError):
        result |= {"kind": "crash"}
    elif isinstance(error, ConrepairError):
        result |= {"kind": "refused", "exit_code": int(error.exit_code)}
    elif isinstance(error, MemoryError):
        result |= {"kind": "memory"}
    return result


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 (an exception of somebody's that can't even be printed)
        return ""


@contextlib.contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Send this process's standard output and error, native code's too, to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    try:
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    except OSError:  # the disk is full: the job itself will say so
        target = os.open(os.devnull, os.O_WRONLY)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        for descriptor, number in zip(saved, (1, 2), strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
