"""What runs in a worker process: jobs that come as lines of JSON, each answered by one."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import importlib.util
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import IO, Any

from conrepair.ground.runtime.errors import (
    ConrepairError,
    DeviceError,
    MissingLibraryError,
    SourceChangedError,
    ToolCrashError,
    UsageError,
)
from conrepair.ground.runtime.files.whole import HASHES, explain_write_error
from conrepair.ground.runtime.handing_on import forget
from conrepair.ground.runtime.libraries import missing_library
from conrepair.ground.runtime.processes.confinement import confine, kept_from
from conrepair.ground.runtime.processes.supervisor import supervised
from conrepair.ground.runtime.typed import call, plain
from conrepair.ground.runtime.user_modules import offer_folders

NO_DEVICE = "device"
NO_LIBRARY = "library"
STORAGE = "storage"

COLOUR = re.compile(r"\x1b\[[0-9;]*m")

_HARDLY_USED = {"sympy", "onnx_ir._symbolic_shapes"}


def serve(setup: Mapping[str, Any], requests: IO[str], answers: int) -> None:
    """Be a worker: do the jobs that come until there are none any more.

    Args:
        setup: "jobs" (as of `Workers`), "reach" and "folders" (as of `confine`), "modules" (folders of a user's own).
        requests: Where jobs come from: a line each, with the arguments of `run_job` before the table, and `HASHES`.
        answers: Descriptor of what they are answered on.
    """
    for descriptor in (requests.fileno(), answers):
        os.set_inheritable(descriptor, False)  # programs that are started here have nothing to answer
    holds = confine(setup["folders"], setup["reach"])  # before the first thread
    _prepare(setup["modules"])
    with os.fdopen(answers, "w", encoding="utf-8") as stream:
        print(json.dumps({"holds": holds}), file=stream, flush=True)
        for line in requests:
            name, payload, folder, log, hashes = json.loads(line)
            HASHES.update(hashes)
            print(json.dumps(run_job(name, payload, folder, log, setup["jobs"])), file=stream, flush=True)
    os._exit(0)  # what libraries would tidy up is a folder that goes anyway


def begin(requests: int, answers: int) -> None:
    """Be a worker below a supervisor of its own, in a process that nothing has been done in yet.

    Args:
        requests: Descriptor of where its setup comes from, a line, and then jobs.
        answers: Descriptor of what they are answered on.
    """
    lines = open(requests, encoding="utf-8")  # noqa: SIM115 (until the process ends)
    setup = json.loads(lines.readline())
    supervised(setup["parent"], requests, answers)
    serve(setup, lines, answers)


def _prepare(module_folders: list[str]) -> None:
    offer_folders(module_folders)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's to handle
    prepare_libraries()
    faulthandler.enable()


class _WhenUsed:
    """Finds what libraries import and hardly ever use: it's loaded when something of it is asked for.

    onnx_ir needs sympy for sizes that are computed of others' names, and it takes a quarter of a second to import.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in _HARDLY_USED else None
        if spec is not None and spec.loader is not None:
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec


def prepare_libraries() -> None:
    """Set what libraries read when they are imported, and leave for later what they need only then."""
    if _WhenUsed not in sys.meta_path:
        sys.meta_path.insert(0, _WhenUsed)
    # TensorFlow reads its log level from the environment of the process, at import, and whether it uses oneDNN. By
    # default it does where the processor has instructions for networks, and convolves channels first nowhere else.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    # Beside other programs, PyTorch's threads that spin while they wait take a core from those that they wait for.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # tqdm, which exporters use, would make a semaphore between processes that a terminated worker leaks.
    with contextlib.suppress(ImportError):
        importlib.import_module("tqdm.std").TqdmDefaultWriteLock.mp_lock = None


def run_job(
    function: str, payload: dict[str, Any], folder: str, log: str, jobs: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """Do a job in this process, and say how it ended.

    Args:
        function: Its name.
        payload: Its arguments, by name.
        folder: Where it writes.
        log: File that receives what is printed meanwhile.
        jobs: As of `Workers`.

    Returns:
        "success" or "failure", and the fields of the outcome.
    """
    with _output_to(Path(log)):
        started = time.perf_counter()
        try:
            value = plain(called(function, payload, Path(folder), jobs))
        # The boundary of the process: whatever the third-party code raised is the job's result.
        except BaseException as error:  # noqa: BLE001
            return "failure", describe_exception(error, Path(folder))
        return "success", {"value": value, "seconds": time.perf_counter() - started}


def called(name: str, payload: dict[str, Any], folder: Path, jobs: Mapping[str, str]) -> Any:
    """Do a job in this process.

    Args:
        name: Of the job.
        payload: Its arguments, by name.
        folder: Where it writes.
        jobs: As of `Workers`.

    Returns:
        What it returns.

    Raises:
        UsageError: if there's no job of that name.
    """
    forget(but=name)
    return call(function_of(name, jobs), payload, folder)


def function_of(name: str, jobs: Mapping[str, str]) -> Callable[..., Any]:
    """What does a job.

    Args:
        name: Of the job.
        jobs: As of `Workers`.

    Raises:
        UsageError: if there's no job of that name.
    """
    if name not in jobs:
        raise UsageError(f"there's no job {name!r}: executors run {', '.join(sorted(jobs))}, and nothing else")
    module, _, function = jobs[name].partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def describe_exception(error: BaseException, folder: Path) -> dict[str, Any]:
    """What the fields of a `Failure` say of an exception that a job raised.

    Args:
        error: What it raised.
        folder: Of the job.
    """
    error = missing_library(error) or error
    kept = kept_from(error)
    storage = None if kept else explain_write_error(error, folder.parent, Path(tempfile.gettempdir()))
    result: dict[str, Any] = {
        "kind": "exception",
        "error_type": type(error).__name__,
        "message": COLOUR.sub("", _words(error)).replace(f"{folder}/", ""),  # it's gone when somebody reads this
        "traceback": "".join(traceback.format_exception(error)),
    }
    if kept is not None:
        result |= {"message": kept}
    elif storage is not None:
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
