"""Run a small script in a Python process of its own, with values in and values out.

For tools that live in an environment of their own, and for libraries whose settings hold for a whole process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.runtime import script_process
from conrepair.runtime.environments import environment, find_environment
from conrepair.runtime.errors import ConversionError, ToolCrashError, ToolEnvironmentError

__all__ = ["run_script"]

_LONGEST = 2000  # characters of a tool's message


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

    Its output goes where this process's goes, and it ends when this process does.

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
    python, flags, settings = _interpreter(environment_name)
    given, result, room = (scratch / name for name in ("arguments.json", "result.json", "room"))
    room.mkdir()
    given.write_text(json.dumps(arguments, allow_nan=False), encoding="utf-8")
    files = [script_process.__file__, str(script), str(given), str(result)]
    sys.stdout.flush()
    sys.stderr.flush()
    completed = subprocess.run(
        [str(python), *flags, *files, str(os.getpid())],
        cwd=room,
        env={**os.environ, **settings, **(variables or {})},
        stdin=subprocess.DEVNULL,
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


def _interpreter(name: str | None) -> tuple[Path, list[str], dict[str, str]]:
    """A Python, its flags, and environment variables."""
    if name is None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        return Path(sys.executable), ["-P"], {"PYTHONPATH": path}
    made = find_environment(environment(name))
    if made is None:
        raise ToolEnvironmentError(
            f"environment {name} hasn't been made, or was removed. Run `conrepair environments make {name}`."
        )
    # Some tools call programs of theirs by name.
    path = os.pathsep.join([str(made.python.parent), os.environ.get("PATH", os.defpath)])
    return made.python, ["-I"], {"PATH": path}


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
