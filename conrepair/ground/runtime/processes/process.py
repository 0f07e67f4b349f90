"""A worker process, seen from the one that gives it jobs: lines of JSON go there, and come back.

What comes from there is only ever read as JSON: code that took hold of a worker can't reach this process by it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from conrepair.ground.runtime.processes.confinement import Hold
from conrepair.ground.runtime.processes.forks.template import ForkedProcess, Template
from conrepair.ground.runtime.user_modules import isolated, library_path

_MAIN = (
    "import json, sys; requests = open(int(sys.argv[1]), encoding='utf-8'); setup = json.loads(requests.readline()); "
    "sys.path[:] = setup['path']; from conrepair.ground.runtime.processes.supervisor import supervised; "
    "supervised(setup['parent'], requests.fileno(), int(sys.argv[2])); "
    "from conrepair.ground.runtime.processes.worker_process import serve; serve(setup, requests, int(sys.argv[2]))"
)  # the supervisor has loaded nothing else
# For temporary files, and for what PoCL, PyTorch and Triton compile.
_OWN_FOLDERS = ("TMPDIR", "POCL_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
_SETTABLE = re.compile(
    r"(XLA|TF_XLA)_FLAGS|TF_ENABLE_ONEDNN_OPTS|ATEN_CPU_CAPABILITY|ONEDNN_MAX_CPU_ISA|TORCHINDUCTOR_[A-Z0-9_]+"
    r"|(OMP|MKL|OPENBLAS)_NUM_THREADS|CONREPAIR_PLUGIN_[A-Z0-9_]+"
)  # none of these names a program or a library to load
ALONE = {"OPENBLAS_NUM_THREADS": "1"}  # more spin while runtimes compute, and double the time of a localization
_START_SECONDS = 120.0
_END_SECONDS = 10.0
_LONGEST = 1 << 30  # bytes of an answer
_CHUNK = 1 << 16
_FAILURE = {"kind": str, "error_type": str, "message": str, "traceback": str, "exit_code": int}


POSSIBLE = hasattr(os, "fork")
"""Whether there can be worker processes: Windows hands them no pipes."""


class WorkerDied(Exception):  # noqa: N818 (it's what happened)
    """The process ended before it answered.

    Attributes:
        code: As of `subprocess.Popen.returncode`; None where it isn't known.
        words: What it printed between jobs.
    """

    def __init__(self, code: int | None, words: str) -> None:
        super().__init__(code)
        self.code, self.words = code, words


class WorkerProcess:
    """One process, and the one that supervises it (`supervisor`), which is what's started here.

    Args:
        setup: See `conrepair.ground.runtime.processes.worker_process.serve`; "environment": variables that it's
            started with, besides.
        temporary: Its folder for temporary files; exists.
        template: What it's forked from; None: it's a fresh interpreter.

    Attributes:
        pid: Its number, for looking at it: only its supervisor may end it. 0 until it's known.
        holds: What it says that it's kept from; known with its first answer.
    """

    def __init__(self, setup: Mapping[str, Any], temporary: Path, template: Template | None = None) -> None:
        self.pid = 0
        self.holds = Hold()
        self._waits: threading.Thread | None = None
        environment = {name: str(temporary) for name in _OWN_FOLDERS}
        environment = checked_environment(setup.get("environment", {})) | environment
        theirs, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        try:
            with (temporary / "worker.log").open("wb") as log:
                self._process: subprocess.Popen[bytes] | ForkedProcess = (
                    _started(theirs, answers, log, environment)
                    if template is None
                    else template.fork(_MAIN, (theirs, answers, log.fileno()), environment)
                )
        finally:
            os.close(theirs)
            os.close(answers)
        parent = os.getpid() if template is None else template.pid
        self._setup: Mapping[str, Any] | None = {**setup, "parent": parent, "path": library_path()}
        self._read = b""
        self._log = temporary / "worker.log"

    @property
    def active(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def call(self, request: Sequence[Any], timeout: float) -> concurrent.futures.Future[Any]:
        """Give it a job.

        Args:
            request: Arguments of `conrepair.ground.runtime.processes.worker_process.run_job` before the table, and
                `HASHES` of `conrepair.ground.runtime.files.whole`.
            timeout: In seconds, after which the process is killed.

        Returns:
            What becomes of it: the answer, `WorkerDied` or `TimeoutError`.
        """
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def wait() -> None:
            try:
                future.set_result(self._answer(request, timeout))
            except (WorkerDied, TimeoutError) as error:
                future.set_exception(error)

        self._waits = threading.Thread(target=wait, name="job", daemon=True)
        self._waits.start()
        return future

    def end(self) -> None:
        """End the process, and all that it started."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it; it gets no more jobs."""
        self.end()
        if self._waits is not None:
            self._waits.join(_END_SECONDS)
        self._hang_up()

    def _answer(self, request: Sequence[Any], timeout: float) -> Any:
        try:
            if self._setup is not None:
                self._tell(self._setup)
                self._setup = None
                if sys.platform == "linux":  # its supervisor says it, before the worker can say anything
                    self.pid = int(self._line(_START_SECONDS)["process"])
                else:
                    self.pid = self._process.pid
                self.holds = Hold(**self._line(_START_SECONDS)["holds"])
            self._tell(request)
            return _checked(self._line(timeout))
        except TimeoutError:
            self.end()
            raise
        # It's gone, or what it says is no answer, which only code that took hold of it would say.
        except (OSError, EOFError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise WorkerDied(self._process.wait(_END_SECONDS), self._words()) from error
            self.end()
            raise WorkerDied(None, self._words()) from error

    def _tell(self, value: Any) -> None:
        line = memoryview(json.dumps(value).encode() + b"\n")
        while line:
            line = line[os.write(self._requests, line) :]

    def _line(self, seconds: float) -> Any:
        ends = time.monotonic() + seconds
        parts, size = [self._read], len(self._read)
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        while b"\n" not in parts[-1]:
            if not poll.poll(max(0.0, ends - time.monotonic()) * 1000):
                raise TimeoutError
            chunk = os.read(self._answers, _CHUNK)
            size += len(chunk)
            if not chunk or size > _LONGEST:
                raise EOFError
            parts.append(chunk)
        line, _, self._read = b"".join(parts).partition(b"\n")
        return json.loads(line)

    def _words(self) -> str:
        with contextlib.suppress(OSError):
            return self._log.read_text(encoding="utf-8", errors="replace")[-_CHUNK:]
        return ""

    def _hang_up(self) -> None:
        """Close its pipes, but what a thread still reads: another file may get its number."""
        if self._requests >= 0:
            requests, self._requests = self._requests, -1
            os.close(requests)
        if self._answers >= 0 and (self._waits is None or not self._waits.is_alive()):
            answers, self._answers = self._answers, -1
            os.close(answers)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self._hang_up()


def _started(requests: int, answers: int, log: IO[bytes], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A fresh interpreter that goes on to be a worker's supervisor."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _MAIN, str(requests), str(answers)],
        stdin=subprocess.DEVNULL,
        stdout=log,  # no terminal of the user's: what's printed there may be commands to it
        stderr=log,
        pass_fds=(requests, answers),
        env={**ALONE, **os.environ, **isolated(), **environment},
    )


def checked_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that a job may ask to be started with: those of libraries that compute.

    Args:
        environment: By their names.

    Raises:
        ValueError: if there's another one: some load code into every process.
    """
    if others := [name for name in environment if not _SETTABLE.fullmatch(name)]:
        raise ValueError(f"a job can't set {', '.join(others)}")
    return dict(environment)


def _checked(answer: Any) -> tuple[str, dict[str, Any]]:
    """A reply in the form that `run_job` gives it.

    Raises:
        ValueError: if it's of another.
    """
    kind, value = answer
    fields: Any = {"success": {"value": None, "seconds": float}, "failure": _FAILURE}.get(kind)
    if fields is None or not all(fields[name] in {None, type(item)} for name, item in value.items()):
        raise ValueError
    return kind, value
