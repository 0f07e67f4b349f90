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
from typing import Any

from conrepair.runtime import script_process
from conrepair.runtime.environments import environment, use_environment
from conrepair.runtime.errors import ConversionError, ToolCrashError, ToolEnvironmentError

__all__ = ["run_script"]

_LONGEST = 2000  # characters of a tool's message


@dataclass(frozen=True)
class _Interpreter:
    """A Python, its flags, environment variables, and the lock that keeps it from being removed, if there's one."""

    python: Path
    flags: tuple[str, ...]
    variables: Mapping[str, str]
    locks: tuple[int, ...] = ()


def run_script(
    script: Path,
    arguments: Mapping[str, Any],
    scratch: Path,
    *,
    what: str,
    environment_name: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Call `main(arguments)` of a script and return what it returns.

    Its output goes where this process's goes, and it ends when this process does. Until it has ended, its environment
    isn't removed.

    Args:
        script: A file with a function `main`; for an environment of its own it must not import conrepair.
        arguments: JSON-able.
        scratch: A folder for the exchange, and for an empty working directory; the caller removes it.
        what: The tool, for messages.
        environment_name: Whose Python runs it; None: our own, with the modules that this process finds.
        variables: Additions to the process's environment variables.

    Returns:
        A JSON-able mapping.

    Raises:
        ConversionError: if `main` raises; in the tool's words.
        ToolCrashError: if the process dies.
        MemoryError: if it's killed.
        ToolEnvironmentError: if the environment hasn't been made.
    """
    given, result, room = (scratch / name for name in ("arguments.json", "result.json", "room"))
    room.mkdir()
    given.write_text(json.dumps(arguments, allow_nan=False), encoding="utf-8")
    files = [script_process.__file__, str(script), str(given), str(result)]
    sys.stdout.flush()
    sys.stderr.flush()
    with _interpreter(environment_name) as interpreter:
        completed = subprocess.run(
            [str(interpreter.python), *interpreter.flags, *files, str(os.getpid())],
            cwd=room,
            env={**os.environ, **interpreter.variables, **(variables or {})},
            stdin=subprocess.DEVNULL,
            pass_fds=interpreter.locks,
            check=False,
        )
    # Written last and whole: what happens to the process behind it doesn't matter.
    answer = json.loads(result.read_text(encoding="utf-8")) if result.is_file() else None
    if answer is None:
        raise _death(what, completed.returncode)
    if "error" in answer:
        if answer["error"]["type"] == "MemoryError":
            raise MemoryError(answer["error"]["message"])
        raise ConversionError(f"{what}: {_words(answer['error'])}")
    value: dict[str, Any] = answer["value"]
    return value


@contextlib.contextmanager
def _interpreter(name: str | None) -> Iterator[_Interpreter]:
    if name is None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        yield _Interpreter(Path(sys.executable), ("-P",), {"PYTHONPATH": path})
        return
    with use_environment(environment(name)) as used:
        if used is None:
            raise ToolEnvironmentError(
                f"environment {name} hasn't been made, or was removed. Run `conrepair environments make {name}`."
            )
        made, lock = used
        # Some tools call programs of theirs by name.
        path = os.pathsep.join([str(made.python.parent), os.environ.get("PATH", os.defpath)])
        yield _Interpreter(made.python, ("-I",), {"PATH": path}, (lock,))


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
        return ToolCrashError(f"the process of {what} died ({signal.Signals(-code).name})")
    return ToolCrashError(f"the process of {what} ended with exit code {code} before it was done")
