"""Look at a case in a process of its own, which may crash or hang."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from multiprocessing.connection import Connection

from conrepair.ground.runtime.libraries import EXTRAS
from conrepair.ground.runtime.typed import typed
from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.looking import SUSPECT, Looked
from conrepair_lab.fuzz.suspicion import Suspicion

PROCESS = "process"
"""Stage of these: what was being done isn't known."""

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS, signal.SIGILL)
_MODULES = {extra.name: next(iter(extra.libraries)) for extra in EXTRAS}


@contextlib.contextmanager
def looking_apart(
    looked: Callable[[Case], Looked], seconds: float, needs: Collection[str] = ()
) -> Iterator[Callable[[Case], Looked]]:
    """Look at cases in copies of a new process, which imports libraries and runs nothing.

    A copy of one that has run something has none of the threads that libraries began there, and all the locks that
    these held: it may wait for ever, which would be told as a hang.

    Args:
        looked: What is done; it travels to another process.
        seconds: It may take for each case.
        needs: Frameworks and backends, whose libraries are imported before.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, looked, seconds, needs), daemon=True)
    process.start()
    there.close()

    def ask(case: Case) -> Looked:
        here.send(case)
        return typed(Looked, json.loads(here.recv_bytes()))

    try:
        yield ask
    finally:
        here.close()
        process.join()


def _serve(there: Connection, looked: Callable[[Case], Looked], seconds: float, needs: Collection[str]) -> None:
    for name in _MODULES.keys() & needs:
        with contextlib.suppress(ImportError):  # the system says itself what it lacks
            importlib.import_module(_MODULES[name])
    with contextlib.suppress(EOFError):  # nobody asks any more
        while True:
            found = looked_apart(functools.partial(looked, there.recv()), seconds)
            there.send_bytes(json.dumps(asdict(found)).encode())


def looked_apart(looked: Callable[[], Looked], seconds: float) -> Looked:
    """Do something that may end its process.

    Args:
        looked: What is done, in a copy of this process.
        seconds: It may take.
    """
    reading, writing = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if not child:
        try:
            for number in _CRASHES:  # libraries have handlers that end otherwise
                signal.signal(number, signal.SIG_DFL)
            writing.send_bytes(json.dumps(asdict(looked())).encode())
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
        return typed(Looked, json.loads(told))
    if not ready:
        return Looked(SUSPECT, Suspicion("hang", PROCESS, message="it never ends"), "", took)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return Looked(SUSPECT, Suspicion("crash", PROCESS, name, f"the process was ended by {name}"), "", took)
    return Looked(
        SUSPECT, Suspicion("crash", PROCESS, "exit", f"the process ended with exit code {status}"), "", took
    )
