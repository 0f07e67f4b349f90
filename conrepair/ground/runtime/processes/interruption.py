"""Ctrl-C that asks for an end before it enforces one."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


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
