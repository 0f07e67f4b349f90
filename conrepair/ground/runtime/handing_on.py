"""What a job leaves in its process for the next one there, so that it needn't be computed twice.

It's a saving and nothing else: a job that finds nothing comes to the same result.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


_VALUES = 32  # each may hold its file open, and much more memory than that has bytes


class Recent(Generic[Value]):
    """Values made of files; the last ones, no more than 32, are held for those who ask for the same again.

    Args:
        most: Bytes that their files have together.
    """

    def __init__(self, most: int) -> None:
        self._most, self._turn = most, threading.Lock()
        self._held: OrderedDict[Hashable, tuple[int, Value]] = OrderedDict()

    def of(
        self, path: Path, how: Hashable, make: Callable[[], Value], *, stays: Callable[[Value], bool] = lambda _: True
    ) -> Value:
        """The value, which nobody changes.

        Args:
            path: The file; what's made of a folder isn't held.
            how: What it's made by besides.
            make: Makes it.
            stays: Whether using it leaves it as it is.
        """
        if not path.is_file():
            return make()
        before = path.stat()
        key = (str(path), before.st_mtime_ns, before.st_ctime_ns, before.st_size, before.st_ino, how)
        with self._turn:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key][1]
        value = make()
        if before.st_size > self._most or not stays(value):
            return value
        with self._turn:
            self._held[key] = before.st_size, value
            while len(self._held) > _VALUES or sum(size for size, _ in self._held.values()) > self._most:
                self._held.popitem(last=False)
        return value


_here = threading.local()


def leave(job: str, value: Any) -> None:
    """Leave something for the next job in this process, if that's of this name; for others it's dropped.

    Args:
        job: Its name.
        value: Anything; its files may be removed once this job has ended.
    """
    _here.left = job, value


def take(job: str) -> Any:
    """What was left for a job of this name, once; None where nothing was."""
    name, value = _here.left if hasattr(_here, "left") else ("", None)
    if name != job:
        return None
    forget()
    return value


def forget(but: str = "") -> None:
    """Drop what was left, unless that's for a job of this name."""
    if hasattr(_here, "left") and _here.left[0] != but:
        del _here.left
