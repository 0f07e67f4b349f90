"""Isolated Python environments for tools whose requirements conflict with ours, made on demand and kept.

An environment is a virtual environment in the user's cache folder, named by its pins and Python's version. It's made
where it stays, as virtual environments can't be moved; a record, written last, says that it is complete. A folder
without one is what an interrupted attempt left, and is made again. Many processes may use one at the same time; who
makes or removes it has it alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from conrepair.ground.runtime.errors import ToolEnvironmentError, UsageError
from conrepair.ground.runtime.files.locks import lock
from conrepair.ground.runtime.files.user_cache import FOLDER
from conrepair.ground.runtime.files.whole import canonical_json, make_folder, write_json

if TYPE_CHECKING:
    from conrepair.ground.runtime.shown.progress import ProgressDisplay

PINNED_PYTHON = (3, 11)
"""The Python that the pins of all environments are for."""

_RECORD = "record.json"
_LAST_LINES = 12
_LAST_CHARACTERS = 2000
_PINS = Path(__file__).parents[3] / "environments"
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9][A-Za-z0-9.+!_-]*)$")
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_OFFLINE = re.compile(
    r"No matching distribution|Could not fetch URL|ConnectionError|NewConnectionError|Max retries|Name or service"
    r"|name resolution|ProxyError|SSLError|timed out"
)


@dataclass(frozen=True)
class Environment:
    """What an isolated environment consists of.

    Attributes:
        name: For people.
        purpose: What it's for.
        gigabytes: Of disk, about.
        minutes: To make it, about.
        pins: Versions by normalized name.
        imports: Modules that have to start, where not all that's installed is pinned.
    """

    name: str
    purpose: str
    gigabytes: float
    minutes: int
    pins: Mapping[str, str]
    imports: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Names the pins and Python's version: 16 hexadecimal digits."""
        text = canonical_json({"pins": dict(self.pins), "python": sys.version_info[:2]})
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class MadeEnvironment:
    """An environment that exists, complete.

    Attributes:
        folder: Where it is.
        gigabytes: What it takes up.
        seconds: What making it took.
        used: When it was used last, in seconds since 1970.
    """

    folder: Path
    gigabytes: float
    seconds: float
    used: float = field(default=0.0, compare=False)

    @property
    def python(self) -> Path:
        """The path of its Python interpreter."""
        return self.folder / "bin" / "python"


def read_pins(requirements: Path) -> dict[str, str]:
    """Versions by normalized name.

    Args:
        requirements: A file of `name==version`, one a line, transitive ones included.
    """
    lines = requirements.read_text(encoding="utf-8").splitlines()
    return dict(map(pin_of, (line for line in lines if line.strip() and not line.startswith("#"))))


def pin_of(text: str) -> tuple[str, str]:
    """A package's normalized name and its version, of `name==version`.

    Raises:
        ValueError: if it's something else.
    """
    match = _PIN.match(text)
    if match is None:
        raise ValueError(f"{text!r} isn't name==version")
    return normalized(match["name"]), match["version"]


def normalized(name: str) -> str:
    """A package's name as all spellings of it are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


ENVIRONMENTS: dict[str, Environment] = {
    item.name: item
    for item in (
        Environment(
            "litert-torch", "PyTorch to TFLite by litert-torch", 2.2, 2, read_pins(_PINS / "litert-torch.txt")
        ),
        Environment("onnx2tf", "ONNX to TensorFlow and TFLite by onnx2tf", 2.7, 2, read_pins(_PINS / "onnx2tf.txt")),
    )
}


def environment(name: str) -> Environment:
    """Return the environment of that name.

    Raises:
        UsageError: if there's none.
    """
    if name not in ENVIRONMENTS:
        raise UsageError(f"there is no environment '{name}'; there are: {', '.join(ENVIRONMENTS)}")
    return ENVIRONMENTS[name]


def environments_folder() -> Path:
    """Where environments are kept: in the folder that `CONREPAIR_CACHE` names, else in the user's cache."""
    named = os.environ.get(FOLDER)
    return Path(named or platformdirs.user_cache_dir("conrepair", appauthor=False)).absolute() / "environments"


def find_environment(wanted: Environment) -> MadeEnvironment | None:
    """The environment, if it has been made and its interpreter is still there.

    Args:
        wanted: Which.
    """
    folder = _folder(wanted)
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        used = (folder / _RECORD).stat().st_mtime
        made = MadeEnvironment(folder, float(record["gigabytes"]), float(record["seconds"]), used)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return made if made.python.is_file() else None  # a link into a Python that was removed is no file


def leftovers(wanted: Environment) -> list[Path]:
    """Folders of that name that are of no use: of other pins, another Python, or half-made."""
    made = find_environment(wanted)
    folders = sorted(environments_folder().glob(f"{wanted.name}-" + "[0-9a-f]" * 16))
    return [folder for folder in folders if made is None or folder != made.folder]


def make_environment(wanted: Environment, display: ProgressDisplay) -> MadeEnvironment:
    """Return the environment, making it if it isn't there.

    Args:
        wanted: Which.
        display: Shows progress.

    Raises:
        ToolEnvironmentError: if it can't be made; says why, with the last lines of the tool that failed.
        StorageError: if the cache folder can't be made.
    """
    if made := find_environment(wanted):
        with contextlib.suppress(OSError):  # in a folder that only others may write to
            os.utime(made.folder / _RECORD)
        return made
    _check(wanted)
    with _lock(wanted, display) as lock:
        if made := find_environment(wanted):  # by another process, meanwhile
            return made
        folder = _folder(wanted)
        shutil.rmtree(folder, ignore_errors=True)
        display.note(
            f"making environment {wanted.name} in {folder} (about {wanted.gigabytes:g} GB, {wanted.minutes} minutes)"
        )
        try:
            return _make(wanted, folder, display, lock)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


@contextlib.contextmanager
def use_environment(wanted: Environment) -> Iterator[tuple[MadeEnvironment, int] | None]:
    """Keep the environment from being removed; waits while another process makes or removes it.

    Yields:
        The environment and the lock's descriptor, for the processes that run in it: while one of them holds it, the
        environment stays, even if we are killed. None if it hasn't been made.
    """
    if find_environment(wanted) is None:  # nothing to hold
        yield None
        return
    descriptor = _open_lock(wanted, os.O_RDONLY)  # it may be in a folder that only others may write to
    try:
        lock(descriptor, shared=True)
        made = find_environment(wanted)
        yield (made, descriptor) if made else None
    finally:
        os.close(descriptor)


def remove_environment(wanted: Environment, display: ProgressDisplay) -> list[Path]:
    """Remove the environment and its leftovers, once nobody uses it; returns the folders that were there."""
    if not environments_folder().is_dir():
        return []
    with _lock(wanted, display):
        return _removed(wanted)


def remove_unused(wanted: Environment) -> bool:
    """Remove the environment and its leftovers unless somebody uses it; whether that was done."""
    descriptor = _open_lock(wanted, os.O_RDWR)
    try:
        return lock(descriptor, wait=False) and bool(_removed(wanted))
    finally:
        os.close(descriptor)


def _removed(wanted: Environment) -> list[Path]:
    made = find_environment(wanted)
    folders = [*([made.folder] if made else []), *leftovers(wanted)]
    for folder in folders:
        (folder / _RECORD).unlink(missing_ok=True)  # first, so that half of it isn't taken for the whole
        shutil.rmtree(folder)
    return folders


def _make(wanted: Environment, folder: Path, display: ProgressDisplay, lock: int) -> MadeEnvironment:
    started = time.perf_counter()
    with display.stage(f"environment {wanted.name}", len(wanted.pins)) as stage:

        def watch(line: str) -> None:
            if "(from -r " in line:  # what is asked for; "(from torch==2.13.0->...)" is what that needs
                stage.advance(line.strip()[:60])
            elif line.startswith(("Downloading", "  Downloading", "Installing")):
                stage.show(line.strip()[:60])

        stage.show("python -m venv")
        _call(wanted, [sys.executable, "-I", "-m", "venv", str(folder)], watch, lock)
        pip = [str(folder / "bin" / "python"), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
        requirements = folder / "requirements.txt"
        requirements.write_text("".join(f"{name}=={version}\n" for name, version in wanted.pins.items()), "utf-8")
        _call(wanted, [*pip, "install", "--progress-bar", "off", "--requirement", str(requirements)], watch, lock)
        if wanted.imports:
            _call(
                wanted,
                [str(folder / "bin" / "python"), "-I", "-c", f"import {', '.join(wanted.imports)}"],
                watch,
                lock,
            )
    size = sum(file.lstat().st_blocks * 512 for file in folder.rglob("*")) / 1e9
    made = MadeEnvironment(folder, round(size, 2), round(time.perf_counter() - started, 1))
    write_json(folder / _RECORD, {"gigabytes": made.gigabytes, "seconds": made.seconds, "pins": dict(wanted.pins)})
    return made


def _call(wanted: Environment, command: list[str], watch: Callable[[str], None], lock: int) -> None:
    """Run a command, line by line.

    The lock goes to it: if we are killed, it may go on for a while, and nobody else must start before it has ended.
    """
    lines: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=(lock,),
        env={key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONHOME"}},
    ) as process:
        try:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                watch(line)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        words = "\n".join(lines)
        last = "".join(f"\n  | {line}" for line in words[-_LAST_CHARACTERS:].splitlines())
        raise ToolEnvironmentError(f"environment {wanted.name} could not be made: {_advice(command, words)}{last}")


def _advice(command: list[str], words: str) -> str:
    again = "then try again; or take another converter."
    if _FULL.search(words):
        return (
            "there is no space left. Nothing of it was kept. Free some (pip needs room in the temporary folder as "
            "well), or set XDG_CACHE_HOME to a folder on another disk, " + again
        )
    if "venv" in command:
        return (
            f"`{sys.executable} -m venv` failed. Check that this Python has venv and pip (Debian and Ubuntu keep "
            "them in the package python3-venv), " + again
        )
    if _OFFLINE.search(words):
        return (
            "the package index could not be reached or doesn't have everything. Check the network and pip's "
            "settings (`pip config list`), " + again
        )
    if "-c" in command:
        return "what was installed doesn't start. See what it says, and take another release."
    return "pip failed. See what it says, " + again


def _check(wanted: Environment) -> None:
    """Refuse at once an environment that this machine can't make."""
    if sys.version_info[:2] != PINNED_PYTHON:
        here, needed = ".".join(map(str, sys.version_info[:2])), ".".join(map(str, PINNED_PYTHON))
        raise ToolEnvironmentError(
            f"environment {wanted.name} could not be made: its versions are pinned for Python {needed}, and this is "
            f"{here}. Run conrepair with Python {needed}."
        )
    root = environments_folder()
    make_folder(root)
    free = shutil.disk_usage(root).free / 1e9
    if free < wanted.gigabytes:
        raise ToolEnvironmentError(
            f"environment {wanted.name} needs about {wanted.gigabytes:g} GB below {root}, where {free:.1f} GB are "
            "free. Free some, or set XDG_CACHE_HOME to a folder on another disk."
        )


@contextlib.contextmanager
def _lock(wanted: Environment, display: ProgressDisplay) -> Iterator[int]:
    """Hold the environment against other processes; yields the lock's descriptor."""
    descriptor = _open_lock(wanted, os.O_RDWR)
    try:
        if not lock(descriptor, wait=False):
            display.note(f"waiting for another process that makes, uses or removes environment {wanted.name}")
            lock(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def _open_lock(wanted: Environment, mode: int) -> int:
    path = environments_folder() / f".{wanted.name}.lock"
    make_folder(path.parent)
    return os.open(path, mode | os.O_CREAT, 0o644)


def _folder(wanted: Environment) -> Path:
    return environments_folder() / f"{wanted.name}-{wanted.key}"
