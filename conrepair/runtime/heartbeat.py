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
_far: dict[int, tuple[str, str]] = {}  # at which part, and how far in it
_listeners: list[Callable[[], None]] = []


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
    _far.pop(number, None)


def far(words: str, *, part: str | None = None, number: int | None = None) -> None:
    """Say how far something is, as in "3 of 24 layers".

    Args:
        words: How far.
        part: Of it that begins; None: it's at the same as before.
        number: Of `begun`; None: what began last of all that is being done.
    """
    number = _last() if number is None else number
    if number in _work:
        _far[number] = (_far.get(number, ("", ""))[0] if part is None else part, words)
    for listener in _listeners:
        listener()


@contextlib.contextmanager
def listening(listener: Callable[[], None]) -> Iterator[None]:
    """Inside the block a function is called whenever something is further."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextlib.contextmanager
def at_work(what: str) -> Iterator[None]:
    """Say what is being done in the block."""
    number = begun(what)
    try:
        yield
    finally:
        ended(number)


def current_work() -> str:
    """What began last of all that is being done, and how far it is; "" for nothing."""
    number = _last()
    return ", ".join(filter(None, (_work.get(number, ""), *_far.get(number, ()))))


def _last() -> int:
    return next(reversed(list(_work)), -1)


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
