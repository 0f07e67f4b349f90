"""A line on standard error where a command has said nothing for a while: what it's at, and for how long."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from conrepair.ground.runtime.words import complain

_SILENCE_SECONDS = 20.0

_numbers = itertools.count()
_work: dict[int, str] = {}
_far: dict[int, tuple[str, str]] = {}  # at which part, and how far in it
_listeners: list[Callable[[bool], None]] = []

_DOING, _TELLING_SECONDS = "doing", 0.5  # file that says what a process is at, and between two states of it


def begun(what: str) -> int:
    """Say what is being done from now on, beside what else is; returns what `ended` wants.

    Args:
        what: As in "still at ...".
    """
    number = next(_numbers)
    _work[number] = what
    far("", part="", number=number)
    return number


def ended(number: int) -> None:
    """Show that a task has ended."""
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
        listener(part is not None)


@contextlib.contextmanager
def telling(folder: Path) -> Iterator[None]:
    """Inside the block what's being done, and how far it is, is written to a file, which another process reads.

    Args:
        folder: Of the file, which isn't there any more behind the block.
    """
    file, written = folder / _DOING, 0.0

    def tell(is_new: bool) -> None:
        nonlocal written
        if is_new or time.monotonic() - written > _TELLING_SECONDS:
            with contextlib.suppress(OSError):  # a full disk: what's being done goes on
                file.write_text(current_work(), encoding="utf-8")
            written = time.monotonic()

    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)
        file.unlink(missing_ok=True)


def told_in(folder: Path) -> str:
    """What `telling` says; "" before and behind it."""
    with contextlib.suppress(OSError):
        return (folder / _DOING).read_text(encoding="utf-8")
    return ""


@contextlib.contextmanager
def at_work(what: str) -> Iterator[None]:
    """Show the task that is done in the block."""
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
