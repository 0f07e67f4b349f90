"""What was opened last in this process, as long as its files are small."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, TypeVar

Value = TypeVar("Value")


_VALUES = 32  # each may hold its file open, and much more memory than that has bytes


class Recent(Generic[Value]):
    """Values made of files; the last ones, no more than 32, are held for those who ask for the same again.

    Args:
        most: Bytes that their files have together.
    """

    def __init__(self, most: int) -> None:
        self._most = most
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
        key = (str(path), before.st_mtime_ns, before.st_size, before.st_ino, how)
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key][1]
        value = make()
        if before.st_size > self._most or not stays(value):
            return value
        self._held[key] = before.st_size, value
        while len(self._held) > _VALUES or sum(size for size, _ in self._held.values()) > self._most:
            self._held.popitem(last=False)
        return value
