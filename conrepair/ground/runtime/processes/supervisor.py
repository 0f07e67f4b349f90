"""A worker's parent: it isn't confined, and when the worker ends, all that it started ends with it.

Programs can leave their parents: a grandchild whose parent has ended goes to whoever of its ancestors asked Linux for
such orphans (PR_SET_CHILD_SUBREAPER), and that's here. A process that is confined can't leave its group either
(`kernel_calls.SILENT`), so that one signal reaches all of that, however fast it multiplies.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path

_SIGNAL_WITH_PARENT, _DUMPABLE, _TAKE_ORPHANS = 1, 4, 36  # of prctl
_WATCH_SECONDS = 0.5


def supervised(parent: int, requests: int, answers: int) -> None:
    """Go on in a child of this process, which ends with it; call it before the first thread.

    This process goes on to nothing else. It says which process the child is, on a line of its own; it ends as the
    child does, or when it's told to (SIGTERM), or when nobody is left to ask; and always all that came of the child
    has ended before. Where there's no Linux it just goes on.

    Args:
        parent: The process that started this one.
        requests: Descriptor of a pipe from there.
        answers: Descriptor of a pipe to there.
    """
    if sys.platform != "linux":
        threading.Thread(target=_end_without, args=(parent,), name="parent", daemon=True).start()
        return
    os.setpgid(0, 0)  # who ends the parent's group leaves this process, to end the rest
    ctypes.CDLL(None).prctl(_TAKE_ORPHANS, 1, 0, 0, 0)
    said, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told)
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGCHLD, signal.SIGTERM)}
    this, (known, tell) = os.getpid(), os.pipe()
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
        for descriptor in (said, told, tell):
            os.close(descriptor)
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_SIGNAL_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != this or not os.read(known, 1):
            os._exit(1)
        os.close(known)
        return
    os.write(answers, b'{"process": %d}\n' % child)
    os.close(answers)
    os.write(tell, b"!")
    _end_as(_outlived(child, _wait(child, parent, requests, said)))


def _end_without(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)


def _wait(child: int, parent: int, requests: int, said: int) -> int | None:
    """How the child ended; None where there's nobody any more whom it could answer, or it isn't wanted."""
    poll = select.poll()
    poll.register(requests, 0)  # nothing of it but that it was hung up
    poll.register(said, select.POLLIN)
    while os.getppid() == parent:
        events = dict(poll.poll(_WATCH_SECONDS * 1000))
        if requests in events or (said in events and signal.SIGTERM in os.read(said, 1024)):
            break
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                return ended[1]
    return None


def _outlived(child: int, status: int | None) -> int:
    """End all that came of the child; returns how that ended itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # its group is empty, or not its own yet
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    with contextlib.suppress(ChildProcessError):  # there's none any more
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                for orphan in _children():
                    os.kill(orphan, signal.SIGKILL)  # it's there, if as a zombie, until it's waited for
                os.waitpid(-1, 0)
    return status


def _children() -> list[int]:
    """Processes whose parent is this one."""
    found, this = [], str(os.getpid())
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            if text.rpartition(")")[2].split()[1] == this:
                found.append(int(folder.name))
    return found


def _end_as(status: int) -> None:
    if os.WIFSIGNALED(status):
        ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)  # the child's memory is dumped, where that's wanted, not this
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError, ValueError):  # of those that can't be handled, there's nothing to set
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))
