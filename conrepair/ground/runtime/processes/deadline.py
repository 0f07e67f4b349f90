"""When a command has to end: what it starts is told how long it may take, and the main process ends itself.

Python's own alarm ends what is written in Python, and whatever lets a signal through: context managers stop workers
and remove scratch folders. A library that holds the process (it parses a file without end, and no signal is looked at
meanwhile) is ended from outside, some seconds later; workers end with their parent, and the next command sweeps what
is left of scratch folders.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.shown.heartbeat import current_work


@contextlib.contextmanager
def ended_gently(ask: Callable[[], bool]) -> Iterator[None]:
    """Inside the block the first Ctrl-C asks for an end, and the second one interrupts.

    Args:
        ask: Asks; whether there was somebody to ask. If not, the first one interrupts.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    usual = signal.getsignal(signal.SIGINT)

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, usual)
        if not ask():
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


_SPARED, _SPARED_SECONDS = 0.1, 1.0  # of what's left when a job is stopped, to say what came of it
_GRACE_SECONDS = 5.0
_SOON = 1e-3  # 0 is never
_WATCHER = """
import os, select, sys
parent, end, seconds, number, words = (kind(word) for kind, word in zip((int, int, float, int, str), sys.argv[1:]))
poll = select.poll()
poll.register(end, select.POLLIN)
if not poll.poll(seconds * 1000):
    try:
        os.write(2, (words + chr(10)).encode(errors="backslashreplace"))
    except OSError:
        pass
    os.kill(parent, number)
    if not poll.poll(1000):
        os.kill(parent, 9)
"""

_ends: list[float] = []


class TimeIsUp(BaseException):
    """The time that a command had has passed. It says what it was at, and is no error that others may handle."""


def allowed(seconds: float) -> float:
    """How long a job may take, so that the command can end in time and say what came of it.

    Args:
        seconds: Its own limit.
    """
    if not _ends:
        return seconds
    left = _ends[-1] - time.monotonic()
    most = max(left - max(_SPARED_SECONDS, _SPARED * left), left / 2, 0.0)
    return min(seconds, round(most, 1))


@contextlib.contextmanager
def ends_after(seconds: float | None, words: str | None) -> Iterator[None]:
    """Let the block end in time.

    Args:
        seconds: That it has; None: any number.
        words: What to say where a library holds the process so that it can't say anything itself, and is ended. None:
            the process isn't only the command's, and goes on until the library returns.

    Raises:
        TimeIsUp: in the block, once they have passed.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    import signal  # which makes classes of all signals, and few commands have a limit

    if not hasattr(signal, "setitimer"):  # Windows
        yield
        return

    def ring(_: int, __: FrameType | None) -> None:
        raise TimeIsUp(current_work())

    started, rest = time.monotonic(), signal.setitimer(signal.ITIMER_REAL, 0)[0]
    usual = signal.signal(signal.SIGALRM, ring)
    _ends.append(started + seconds)
    try:
        with contextlib.nullcontext() if words is None else _watched(seconds + _GRACE_SECONDS, words):
            signal.setitimer(signal.ITIMER_REAL, max(seconds, _SOON))
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)
        if rest:  # of who called the command
            signal.setitimer(signal.ITIMER_REAL, max(rest - (time.monotonic() - started), _SOON))
        _ends.pop()


@contextlib.contextmanager
def _watched(seconds: float, words: str) -> Iterator[None]:
    """Inside the block a process waits that ends this one when it's late: it needs nothing of this one's for that."""
    import ctypes  # few commands have a limit
    import subprocess

    # The signal whose number is the exit code: C's _exit as its handler ends the process by just that code, without
    # Python, whose handlers wait for the library to return.
    number = int(ExitCode.EXECUTION)
    library = ctypes.CDLL(None)
    library.signal.restype, library.signal.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
    usual = library.signal(number, ctypes.cast(library._exit, ctypes.c_void_p))
    end, ours = os.pipe()
    command = [sys.executable, "-I", "-S", "-c", _WATCHER, *map(str, (os.getpid(), end, seconds, number)), words]
    watcher = None
    try:
        with contextlib.suppress(OSError):  # none can be started: then the alarm must do
            watcher = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(end,),
                start_new_session=True,  # Ctrl-C isn't meant for it
            )
        yield
    finally:
        if watcher is not None:
            watcher.kill()
            watcher.wait()
        os.close(ours)
        os.close(end)
        library.signal(number, usual)
