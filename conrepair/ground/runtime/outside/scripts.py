"""Run a small script in a Python process of its own, with values in and values out.

For tools that live in an environment of their own, and for libraries whose settings hold for a whole process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from conrepair.ground.runtime.errors import ToolCrashError, ToolEnvironmentError, ToolError
from conrepair.ground.runtime.outside import script_process
from conrepair.ground.runtime.outside.environments import Environment, environment, use_environment

_LONGEST = 2000  # characters of a tool's message


@dataclass(frozen=True)
class Interpreter:
    """A Python, its flags, environment variables, and the lock that keeps it from being removed, if there's one."""

    python: Path
    flags: tuple[str, ...]
    variables: Mapping[str, str]
    locks: tuple[int, ...] = ()


class Script:
    """A script in a process that stays, so that what it has imported is there for the next call.

    Its output goes where this process's goes, and it ends when this process does. Until it has ended, its environment
    isn't removed. Use as a context manager, or `close` it.

    Args:
        script: A file with functions of one argument; for an environment of its own it must not import conrepair.
        room: An empty folder that it works in.
        what: The tool, for messages.
        within: Whose Python runs it; None: our own, with the modules that this process finds.
        variables: Additions to the process's environment variables.

    Raises:
        ToolEnvironmentError: if the environment hasn't been made.
    """

    def __init__(
        self,
        script: Path,
        room: Path,
        *,
        what: str,
        within: Environment | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._what = what
        sys.stdout.flush()
        sys.stderr.flush()
        asked, requests = os.pipe()
        answers, told = os.pipe()
        files = [script_process.__file__, str(script), str(asked), str(told), str(os.getpid())]
        try:
            with interpreter(within) as python:
                self._process = subprocess.Popen(
                    [str(python.python), *python.flags, *files],
                    cwd=room,
                    env={**os.environ, **python.variables, **(variables or {})},
                    stdin=subprocess.DEVNULL,
                    pass_fds=(asked, told, *python.locks),
                )
        except BaseException:
            os.close(requests)
            os.close(answers)
            raise
        finally:
            os.close(asked)
            os.close(told)
        self._requests, self._answers = (
            os.fdopen(requests, "w", encoding="utf-8"),
            os.fdopen(answers, encoding="utf-8"),
        )

    def __enter__(self) -> Script:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if error is not None:
            self._process.kill()
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        return self._process.poll() is None

    def call(self, function: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call one of its functions.

        Args:
            function: Its name.
            arguments: JSON-able.

        Returns:
            A JSON-able mapping.

        Raises:
            ToolError: if it raises; in the tool's words.
            ToolCrashError: if the process dies, or has died.
            MemoryError: if it's killed, or says that there's none left.
        """
        with contextlib.suppress(BrokenPipeError):
            self._requests.write(json.dumps({"function": function, "arguments": arguments}, allow_nan=False) + "\n")
            self._requests.flush()
        line = self._answers.readline()
        if not line.endswith("\n"):
            raise _death(self._what, self._process.wait())
        answer = json.loads(line)
        if (error := answer.get("error")) is None:
            value: dict[str, Any] = answer["value"]
            return value
        if error["type"] == "MemoryError":
            raise MemoryError(error["message"])
        raise ToolError(f"{self._what}: {_words(error)}", error["type"], error["message"], error["place"])

    def close(self) -> None:
        """Let it end; returns when it has. What happens to the process behind its answers doesn't matter."""
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._answers.close()
        self._process.wait()


def run_script(
    script: Path,
    arguments: Mapping[str, Any],
    scratch: Path,
    *,
    what: str,
    environment_name: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Call `main(arguments)` of a script, in a process for this call alone, and return what it returns.

    Args:
        script: See `Script`.
        arguments: JSON-able.
        scratch: A folder for an empty working directory; the caller removes it.
        what: The tool, for messages.
        environment_name: Whose Python runs it; None: our own.
        variables: Additions to the process's environment variables.

    Raises:
        ToolError: if `main` raises; in the tool's words.
        ToolCrashError: if the process dies.
        MemoryError: if it's killed.
        ToolEnvironmentError: if the environment hasn't been made.
    """
    room = scratch / "room"
    room.mkdir()
    within = None if environment_name is None else environment(environment_name)
    with Script(script, room, what=what, within=within, variables=variables) as running:
        return running.call("main", arguments)


@contextlib.contextmanager
def interpreter(within: Environment | None) -> Iterator[Interpreter]:
    """The Python of an environment, which isn't removed meanwhile; of None our own, with what this process finds.

    Raises:
        ToolEnvironmentError: if the environment hasn't been made.
    """
    if within is None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        yield Interpreter(Path(sys.executable), ("-P",), {"PYTHONPATH": path})
        return
    with use_environment(within) as used:
        if used is None:
            raise ToolEnvironmentError(
                f"environment {within.name} hasn't been made, or was removed. "
                f"Run `conrepair environments make {within.name}`."
            )
        made, lock = used
        # Some tools call programs of theirs by name.
        path = os.pathsep.join([str(made.python.parent), os.environ.get("PATH", os.defpath)])
        yield Interpreter(made.python, ("-I",), {"PATH": path}, (lock,))


def _words(error: Mapping[str, str]) -> str:
    message = error["message"].strip()
    if error["type"] in {"ConversionError", "ModelLoadError"}:  # ours: whole sentences
        return message
    if error["type"] == "SystemExit":
        return f"the tool gave up (exit code {message or 0}); its last words say why"
    return f"{error['type']}: {message[:_LONGEST]}"


def _death(what: str, code: int) -> Exception:
    if code == -signal.SIGKILL:
        return MemoryError(f"the process of {what} was killed, most likely because memory ran out")
    if code < 0:
        name = signal.Signals(-code).name
        return ToolCrashError(f"the process of {what} died ({name})", name)
    return ToolCrashError(f"the process of {what} ended with exit code {code} before it was done", "exit")
