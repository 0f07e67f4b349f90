"""Look at a case in a process of its own, which may crash or hang."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from multiprocessing import Pipe

from conrepair.frameworks.model import from_json, to_json
from conrepair.fuzz.looking import SUSPECT, Looked
from conrepair.fuzz.suspicion import Suspicion

__all__ = ["PROCESS", "looked_apart"]

PROCESS = "process"
"""Stage of these: what was being done isn't known."""

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS, signal.SIGILL)


def looked_apart(looked: Callable[[], Looked], seconds: float) -> Looked:
    """Do something that may end its process.

    Args:
        looked: What is done, in a copy of this process.
        seconds: It may take.
    """
    reading, writing = Pipe(duplex=False)
    child = os.fork()
    if not child:
        try:
            for number in _CRASHES:  # libraries have handlers that end otherwise
                signal.signal(number, signal.SIG_DFL)
            writing.send_bytes(json.dumps(to_json(looked())).encode())
        finally:
            os._exit(0)
    writing.close()
    begun, told = time.monotonic(), b""
    try:
        ready = reading.poll(seconds)
        if ready:
            with contextlib.suppress(EOFError):  # it ended without a word
                told = reading.recv_bytes()
        else:
            os.kill(child, signal.SIGKILL)
    finally:
        reading.close()
        _, status = os.waitpid(child, 0)
    took = time.monotonic() - begun
    if told:
        return from_json(Looked, json.loads(told))
    if not ready:
        return Looked(SUSPECT, Suspicion("hang", PROCESS, message="it doesn't end"), "", took)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return Looked(SUSPECT, Suspicion("crash", PROCESS, name, f"the process ends by {name}"), "", took)
    return Looked(SUSPECT, Suspicion("crash", PROCESS, "exit", f"the process ends with {status}"), "", took)
