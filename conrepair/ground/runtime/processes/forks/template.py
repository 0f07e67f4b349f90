"""Workers forked from a process that has imported what they need, as seen from the one that gives them jobs."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from conrepair.ground.runtime.user_modules import isolated, library_path

FORKS = sys.platform == "linux" and hasattr(socket, "send_fds")
"""Whether processes can be forked so: elsewhere libraries of the system's aren't safe in a fork."""

_MAIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from conrepair.ground.runtime.processes.forks.template_process import fork_workers; "
    "fork_workers(int(sys.argv[1]))"
)
_LONGEST_CODE = 16  # bytes
_END_SECONDS = 5.0


class Template:
    """The process that workers are forked from.

    Args:
        folders: Where workers may write.
        imports: Modules that they need.
        variables: Of the environment, besides this process's own.
        log: Of what it prints.
    """

    def __init__(
        self, folders: Sequence[str], imports: Sequence[str], variables: Mapping[str, str], log: Path
    ) -> None:
        self._numbers = itertools.count()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, log.open("wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _MAIN, str(theirs.fileno()), json.dumps(library_path())],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                pass_fds=[theirs.fileno()],
                env={**variables, **os.environ, **isolated()},
            )
        self._tell({"folders": list(folders), "imports": list(imports)})

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def active(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def fork(self, program: str, descriptors: Sequence[int], environment: Mapping[str, str]) -> ForkedProcess:
        """Have a worker forked.

        Args:
            program: Of a fresh interpreter, for where a fork isn't safe.
            descriptors: Of its requests, its answers and its log.
            environment: Variables, besides the template's.
        """
        number, (ended, told) = next(self._numbers), os.pipe()
        try:
            message = {"number": number, "program": program, "environment": dict(environment)}
            self._tell(message, [*descriptors, told])
        finally:
            os.close(told)
        return ForkedProcess(self, number, ended)

    def send(self, number: int, sent: signal.Signals) -> None:
        """Send a signal to a worker's supervisor, unless it has ended.

        Args:
            number: Of the worker.
            sent: The signal.
        """
        self._tell({"number": number, "signal": sent})

    def ended(self) -> int:
        """What its workers have ended with, as it has."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_END_SECONDS)
        return -signal.SIGKILL

    def close(self) -> None:
        """End it; those that were forked have ended."""
        self._channel.close()
        self._process.terminate()
        self._process.wait()

    def _tell(self, message: Mapping[str, object], descriptors: Sequence[int] = ()) -> None:
        with contextlib.suppress(OSError):  # it's gone, and so are its workers
            socket.send_fds(self._channel, [json.dumps(message).encode()], descriptors)


class ForkedProcess:
    """A worker's supervisor that a template has forked, asked as a `subprocess.Popen` is.

    Args:
        template: The template.
        number: That the template knows it by.
        ended: Descriptor of where its exit code is told; nothing is, where the template is killed, and it with it.
    """

    def __init__(self, template: Template, number: int, ended: int) -> None:
        self._template, self._number, self._ended = template, number, ended
        self._lock = threading.Lock()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it's there."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; returns its exit code.

        Args:
            timeout: In seconds.

        Raises:
            subprocess.TimeoutExpired: if it's still there.
        """
        with self._lock:
            if self.returncode is None:
                poll = select.poll()  # of `select`, a descriptor above 1023 has no place
                poll.register(self._ended, select.POLLIN)
                if not poll.poll(None if timeout is None else timeout * 1000):
                    raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
                told = os.read(self._ended, _LONGEST_CODE)
                self.returncode = int(told) if told else self._template.ended()
                os.close(self._ended)
            return self.returncode

    def terminate(self) -> None:
        """Ask it to end the worker."""
        self._template.send(self._number, signal.SIGTERM)

    def __del__(self) -> None:
        if self.returncode is None:
            os.close(self._ended)

    def kill(self) -> None:
        """End it, if it doesn't do what it's asked."""
        self._template.send(self._number, signal.SIGKILL)
