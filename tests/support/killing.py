"""Run a real audit in a session of its own, kill it, and look at what it left."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from documents import rows_in

from conrepair.ground.runtime.files.listing import LIST

_PATIENCE = 120.0
_CHANGING = {"folder", "seconds", "times", "reused", "path", "load_seconds", "run_seconds"}

Stamps = dict[str, tuple[int, int]]


def start(place: Path, *arguments: str) -> subprocess.Popen[str]:
    """Run a configuration, or, given a folder and arguments, another verb there."""
    words = arguments or ("run", str(place))
    return subprocess.Popen(
        [sys.executable, "-m", "conrepair", *words],
        cwd=place if arguments else place.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=_heard,
    )


def _heard() -> None:
    """Let Ctrl-C be heard, where whoever runs the tests ignores it, as what runs in a shell's background does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def kill(process: subprocess.Popen[str], *, everybody: bool) -> None:
    """SIGKILL the whole process group, or the main process alone; then nobody of the session may stay."""
    if everybody:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    wait_until(lambda: not living(process.pid), 15)
    if process.stdout is not None:
        process.stdout.close()


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the end; what it printed."""
    output, _ = process.communicate(timeout=_PATIENCE)
    return output


def living(session: int) -> list[str]:
    """Command lines of the processes of a session that aren't zombies."""
    listing = subprocess.run(
        ["ps", "-o", "stat=,args=", "-s", str(session)], capture_output=True, text=True, check=False
    )
    return [line for line in listing.stdout.splitlines() if not line.startswith("Z")]


def wait_until(true: Callable[[], bool], seconds: float = _PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def entries(store: Path) -> Stamps:
    """Inode and time of every entry's record."""
    found = {}
    for record in store.glob("[!.]*/record.json"):
        status = record.stat()
        found[record.parent.name] = status.st_ino, status.st_mtime_ns
    return found


def damaged(store: Path) -> list[str]:
    """Entries that aren't what their record says; the store's own code plays no part here."""
    bad = []
    for folder in store.glob("[!.]*"):
        files = {
            file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in folder.rglob("*")
            if file.is_file() and file != folder / "record.json"
        }
        try:
            listed = json.loads((folder / "record.json").read_text())["files"]
        except (OSError, ValueError):
            listed = None
        if files != listed:
            bad.append(folder.name)
    return bad


def leftovers(folder: Path) -> list[str]:
    """What is unfinished below a folder."""
    return [str(path) for path in folder.rglob(".*") if path.name not in {LIST, ".lock", ".users", ".work"}]


def steady(value: Any) -> Any:
    """A report's value without times and places."""
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in _CHANGING}
    return [steady(item) for item in value] if isinstance(value, list) else value


def report_rows(folder: Path) -> Any:
    return steady(rows_in(folder))
