"""Jobs that reach for what a worker is kept from; each answers what became of that."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.processes.confinement import held

Payload = dict[str, Any]


def _tried(reach: Callable[[], object]) -> str:
    try:
        reach()
    except OSError as error:
        return type(error).__name__
    return "done"


def write(folder: Path, **payload: Any) -> Payload:
    """Ways to change files and folders, in order."""
    path = Path(payload["path"])
    victim = path / "victim"
    own = folder / "own"
    own.write_text("x")
    ways: dict[str, Callable[[], object]] = {
        "create": lambda: (path / "new").write_text("x"),
        "overwrite": lambda: victim.write_text("x"),
        "append": lambda: victim.open("a").close(),
        "truncate": lambda: os.truncate(victim, 0),
        "remove": victim.unlink,
        "rename": lambda: victim.rename(path / "other"),
        "move out": lambda: own.rename(path / "moved"),
        "take in": lambda: victim.rename(folder / "taken"),
        "link out": lambda: os.link(own, path / "linked"),
        "link in": lambda: os.link(victim, folder / "linked"),
        "symlink": lambda: (path / "symlink").symlink_to("/"),
        "make a folder": lambda: (path / "folder").mkdir(),
        "make a pipe": lambda: os.mkfifo(path / "pipe"),
        "through a link": lambda: _through_a_link(folder, victim),
        "by a program": lambda: _by_a_program(victim),
        "by a child": lambda: _by_a_child(victim),
    }
    return {name: _tried(reach) for name, reach in ways.items()}


def _through_a_link(folder: Path, victim: Path) -> None:
    (folder / "link").symlink_to(victim)
    (folder / "link").write_text("x")


def _by_a_program(victim: Path) -> None:
    if subprocess.run(["/bin/sh", "-c", f"echo x > '{victim}'"], capture_output=True, check=False).returncode:
        raise PermissionError


def _by_a_child(victim: Path) -> None:
    program = [sys.executable, "-c", f"open({str(victim)!r}, 'w')"]
    if subprocess.run(program, capture_output=True, check=False).returncode:
        raise PermissionError


def change_mode(folder: Path, **payload: Any) -> Payload:
    """Modes and owners: libraries set them on copies, which must not fail."""
    path = Path(payload["path"])
    path.chmod(0o777)
    os.chown(path, 1, 1)
    (folder / "touched").touch()
    shutil.copy2(path, folder / "copy")
    return {"copied": (folder / "copy").read_text(), "touched": (folder / "touched").exists()}


def connect(folder: Path, **payload: Any) -> Payload:
    def tcp() -> None:
        socket.create_connection(("127.0.0.1", payload["port"]), 5).close()

    def udp() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
            here.sendto(b"x", ("127.0.0.1", payload["port"]))

    def listen() -> None:
        with socket.socket() as here:
            here.bind(("127.0.0.1", 0))

    def unix() -> None:
        with socket.socket(socket.AF_UNIX) as here:
            here.connect(payload["unix"])

    def shell() -> None:
        words = f"exec 3<>/dev/tcp/127.0.0.1/{payload['port']}"
        if subprocess.run(["/bin/bash", "-c", words], capture_output=True, check=False).returncode:
            raise PermissionError

    return {reach.__name__: _tried(reach) for reach in (tcp, udp, listen, unix, shell)}


def end(folder: Path, **payload: Any) -> Payload:
    """Signals to another process, and to itself."""
    return {
        "other": _tried(lambda: os.kill(payload["pid"], signal.SIGKILL)),
        "own": _tried(lambda: os.kill(os.getpid(), 0)),
    }


def allowed(folder: Path, **payload: Any) -> Payload:
    """What libraries do all the time."""
    import tempfile

    import numpy as np

    with tempfile.TemporaryDirectory() as room, tempfile.TemporaryFile() as unnamed:
        unnamed.write(b"x")
        (Path(room) / "sub").mkdir()
        (Path(room) / "sub" / "file").write_text("x")
        (Path(room) / "sub").rename(folder / "moved")
        (folder / "moved" / "file").rename(Path(room) / "back")
    np.lib.format.open_memmap(folder / "rows.npy", mode="w+", shape=(4,)).flush()
    Path("/dev/null").write_text("x")
    here, there = socket.socketpair()
    here.close()
    there.close()
    said = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True).stdout
    return {"said": said.strip(), "temporary": tempfile.gettempdir()}


def holds(folder: Path, **payload: Any) -> Payload:
    return {"text": str(held()), "full": held().full}


def imported(folder: Path, **payload: Any) -> Payload:
    """Which of some modules come from where."""
    files = {}
    for name in payload["names"]:
        try:
            files[name] = str(getattr(importlib.import_module(name), "__file__", ""))
        except ImportError:
            files[name] = "missing"
    return {"files": files, "path": sys.path, "safe": sys.flags.safe_path}


def say(folder: Path, **payload: Any) -> Payload:
    """Answers what isn't JSON on the descriptor that answers go by, as code that took hold of a worker might."""
    found = []
    for number in sorted(int(path.name) for path in Path("/proc/self/fd").iterdir() if int(path.name) > 2):
        try:
            kind = Path(f"/proc/self/fd/{number}").readlink()
            if str(kind).startswith("pipe:"):
                os.write(number, bytes.fromhex(payload["bytes"]) + b"\n")
                found.append(number)
        except OSError:
            continue
    return {"found": found}


def leave_links(folder: Path, **payload: Any) -> Payload:
    """Leaves links where the main process writes when the job is done, for it to write through."""
    victim = Path(payload["victim"])
    (folder / ".record.json").symlink_to(victim)
    (folder / "sub").mkdir()
    (folder / "sub" / "link").symlink_to(victim.parent)
    (folder / "file").write_text("its own")
    return {}


def swap_folder(folder: Path, **payload: Any) -> Payload:
    """Makes its folder a link to another."""
    folder.rename(folder.with_name("away"))
    folder.symlink_to(payload["victim"])
    return {}


def leave_journal(folder: Path, **payload: Any) -> Payload:
    """Dies, having noted what it tried, with links where the main process takes note of that."""
    journal = Path(payload["journal"])
    (journal / "lines").symlink_to(payload["victim"])
    (journal / "stop").symlink_to(payload["victim"])
    (journal / f"tried{payload['whose']}").write_text("a line for the victim")
    os.kill(os.getpid(), signal.SIGSEGV)
    return {}


def leave_log(folder: Path, **payload: Any) -> Payload:
    """Fails, with its log a link to what never ends."""
    log = folder.with_name(f"{folder.name}.log")
    log.unlink()
    log.symlink_to("/dev/zero")
    raise ValueError("no")


def write_outside(folder: Path, **payload: Any) -> Payload:
    """Writes where it mustn't, and minds."""
    Path(payload["path"]).write_text("x")
    return {}
