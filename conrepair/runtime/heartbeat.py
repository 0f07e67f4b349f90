"""A line on standard error where a command has said nothing for a while: what it's at, and for how long."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator

from conrepair.runtime.words import complain

_SILENCE_SECONDS = 20.0

_numbers = itertools.count()
_work: dict[int, str] = {}


def begun(what: str) -> int:
    """Say what is being done from now on, beside what else is; returns what `ended` wants.

    Args:
        what: As in "still at ...".
    """
    number = next(_numbers)
    _work[number] = what
    return number


def ended(number: int) -> None:
    """Say that it isn't being done any more."""
    _work.pop(number, None)


@contextlib.contextmanager
def at_work(what: str) -> Iterator[None]:
    """Say what is being done in the block."""
    number = begun(what)
    try:
        yield
    finally:
        ended(number)


def current_work() -> str:
    """What began last of all that is being done; "" for nothing."""
    return next(reversed(list(_work.values())), "")


@contextlib.contextmanager
def heartbeat(spoke: Callable[[], float], *, wanted: bool = True) -> Iterator[None]:
    """Inside the block what's being done is said whenever nothing was said for 20 s.

    Args:
        spoke: When something was said last, in seconds of `time.monotonic`.
        wanted: Whether anybody wants to hear.
    """
    if not wanted:
        yield
        return
    start, over = time.monotonic(), threading.Event()

    def beat() -> None:
        last = start
        while not over.wait(max(last + _SILENCE_SECONDS - time.monotonic(), 0.01)):
            if spoke() > last:
                last = spoke()
                continue
            last = time.monotonic()
            complain(f"still at {current_work()} ({last - start:.0f} s)")

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
