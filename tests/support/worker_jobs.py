"""Jobs for worker processes: they answer, raise, write, hang and die. Each takes (folder, **payload).

A job that is given "tally" (a file) leaves one line there each time that it really runs.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any, NoReturn

from conrepair.ground.runtime.errors import DataError, ModelLoadError
from conrepair.ground.runtime.files.journal import Journal
from conrepair.ground.runtime.files.whole import HASHES
from conrepair.ground.runtime.outside.scripts import run_script

Payload = dict[str, Any]


def _count(payload: Payload) -> None:
    if "tally" in payload:
        with Path(payload["tally"]).open("a", encoding="utf-8") as stream:
            stream.write(f"{payload.get('name', '')}\n")


def echo(folder: Path, **payload: Any) -> Payload:
    _count(payload)
    return {"payload": payload, "pid": os.getpid()}


def hashes(folder: Path, **payload: Any) -> Payload:
    return {"known": HASHES}


def loaded(folder: Path, **payload: Any) -> Payload:
    """What this process has before it does anything, and what it's forked from."""
    stat = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")
    return {
        "modules": [*sys.modules],
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "grandparent": int(stat.rpartition(")")[2].split()[1]),
        "temporary": tempfile.gettempdir(),
    }


def variable(folder: Path, **payload: Any) -> Payload:
    """A variable of the worker's environment."""
    return {"value": os.environ.get(payload["name"])}


def tvm_threads(folder: Path, **payload: Any) -> Payload:
    """How many threads TVM's kernels may use once a build is loaded."""
    import tvm

    from conrepair.formats.models.model import Model
    from conrepair.formats.tvm.backend import BACKEND

    BACKEND.load(Model("onnx", "", ""), payload["options"])
    return {"threads": tvm.runtime.num_threads()}


def draw(folder: Path, **payload: Any) -> Payload:
    """Answers differently each time."""
    _count(payload)
    text = uuid.uuid4().hex
    (folder / "drawn.txt").write_text(text, encoding="utf-8")
    return {"drawn": text}


def write(folder: Path, **payload: Any) -> Payload:
    _count(payload)
    (folder / "sub").mkdir()
    (folder / "sub" / "out.txt").write_text(payload["text"], encoding="utf-8")
    return {"file": "sub/out.txt"}


def read(folder: Path, **payload: Any) -> Payload:
    _count(payload)
    return {"text": Path(payload["path"]).read_text(encoding="utf-8")}


def meet(folder: Path, **payload: Any) -> Payload:
    """Waits until the other one is there as well: two of these end only when they run side by side."""
    room = Path(payload["room"])
    (room / payload["name"]).touch()
    ends = time.monotonic() + payload["patience"]
    while len(list(room.iterdir())) < 2 and time.monotonic() < ends:
        time.sleep(0.01)
    met = len(list(room.iterdir())) >= 2
    if payload["leaves"]:
        (room / payload["name"]).unlink()
    return {"met": met}


def search(folder: Path, **payload: Any) -> Payload:
    """Tries what "items" names, and dies of those that "fatal" names; answers which it has tried by itself."""
    _count(payload)
    journal = Journal(Path(payload["journal"]), payload["whose"])
    tried = []
    for item in payload["items"]:
        if item in journal:
            continue
        with journal.trying(item):
            if item in payload["fatal"]:
                os.kill(os.getpid(), payload.get("signal", signal.SIGSEGV))
            tried.append(item)
    return {"tried": tried}


def script(folder: Path, **payload: Any) -> Payload:
    """Calls a script in a process of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return run_script(Path(payload["script"]), {}, Path(scratch), what="the tool")


# --- Exceptions ---


def fail(folder: Path, **payload: Any) -> NoReturn:
    _count(payload)
    (folder / "half.bin").write_bytes(b"half-made")
    print("converting layer 7")
    raise ValueError(payload.get("message", "axis 3 is out of range\nsecond line"))


def refuse_data(folder: Path, **payload: Any) -> NoReturn:
    _count(payload)
    raise DataError("the photos don't fit")


def lack_library(folder: Path, **payload: Any) -> NoReturn:
    _count(payload)
    raise ModuleNotFoundError("No module named 'onnxsim'", name="onnxsim")


def refuse_model(folder: Path, **payload: Any) -> NoReturn:
    raise ModelLoadError("the file is damaged.\nExport it again.")


def out_of_memory(folder: Path, **payload: Any) -> NoReturn:
    _count(payload)
    raise MemoryError("3 TiB")


def disk_full(folder: Path, **payload: Any) -> NoReturn:
    _count(payload)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / "weights.bin"))


def disk_full_in_disguise(folder: Path, **payload: Any) -> NoReturn:
    raise RuntimeError("H5Fwrite failed: (errno = 28, error message = 'No space left on device')")


def file_too_large(folder: Path, **payload: Any) -> Payload:
    """The kernel itself refuses the write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        (folder / "weights.bin").write_bytes(bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    return {}


def leave(folder: Path, **payload: Any) -> NoReturn:
    sys.exit(3)


def interrupt(folder: Path, **payload: Any) -> NoReturn:
    raise KeyboardInterrupt


class _Speechless(Exception):  # noqa: N818 (a test's name)
    def __str__(self) -> str:
        raise RuntimeError("no words")


def speechless(folder: Path, **payload: Any) -> NoReturn:
    raise _Speechless


# --- Deaths ---


def die(folder: Path, **payload: Any) -> None:
    """As native code does: a message straight to descriptor 2, then a signal, below some Python frames."""
    _count(payload)
    os.write(2, b"conv.cc:17: assertion failed: stride > 0\n")
    _descend(payload.get("depth", 0), payload["signal"])


def _descend(depth: int, number: int) -> None:
    if depth:
        _descend(depth - 1, number)
    else:
        os.kill(os.getpid(), number)
        time.sleep(10)


def exit_at_once(folder: Path, **payload: Any) -> NoReturn:
    os._exit(payload["code"])


def hang(folder: Path, **payload: Any) -> Payload:
    _count(payload)
    os.write(2, b"pass 3 of 1000000\n")
    time.sleep(60)
    return {}


def hang_deaf(folder: Path, **payload: Any) -> Payload:
    """Doesn't end when it's asked to, like native code that never returns to Python."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
    return {}


def hang_holding_python(folder: Path, **payload: Any) -> Payload:
    """Native code that doesn't let other threads of Python run."""
    _count(payload)
    ctypes.PyDLL(None).sleep(60)
    return {}


def swell(folder: Path, **payload: Any) -> Payload:
    """Takes more and more memory, and says how much."""
    _count(payload)
    held = []
    for _ in range(payload["mib"] // 16):
        held.append(bytearray(os.urandom(1) * (16 << 20)))
        time.sleep(0.02)
    if payload.get("keeps"):
        _KEPT.extend(held)
    time.sleep(payload.get("rests", 0))
    return {"mib": 16 * len(held), "pid": os.getpid()}


_KEPT: list[bytearray] = []


# --- Output ---


def talk(folder: Path, **payload: Any) -> Payload:
    print("python out")
    print("python err", file=sys.stderr)
    os.write(1, b"native out\n")
    os.write(2, b"native err\n")
    if payload.get("fails"):
        raise ValueError("after talking")
    return {}


def talk_much(folder: Path, **payload: Any) -> NoReturn:
    for number in range(20_000):
        os.write(1, f"line {number} \xff\n".encode("latin-1"))
    raise ValueError("done")


# --- Values that can't be handed back ---


class _Bomb:
    """Can be pickled, but not unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)


def answer(folder: Path, **payload: Any) -> Any:
    """Returns what the payload names."""
    _count(payload)
    values: dict[str, Any] = {
        "function": lambda: None,
        "lock": threading.Lock(),
        "bomb": _Bomb(),
        "object": object(),
        "nan": math.nan,
        "path": folder,
    }
    return {"value": values[payload["what"]]}


def detach(folder: Path, **payload: Any) -> Payload:
    """Leaves a grandchild of a session of its own behind, as far as it can, whose parent has ended."""
    there, here = os.pipe()
    if (child := os.fork()) == 0:
        os.setsid()
        if (grandchild := os.fork()) == 0:
            os.setsid()
            os.execv("/bin/sleep", ["sleep", "600"])  # noqa: S606 (there's no shell to need)
        os.write(here, b"%d" % grandchild)
        os._exit(0)
    os.waitpid(child, 0)
    found = {"pid": int(os.read(there, 20))}
    if payload.get("then") == "hang":
        (folder / "pid").write_text(str(found["pid"]))
        hang(folder, **payload)
    return found
