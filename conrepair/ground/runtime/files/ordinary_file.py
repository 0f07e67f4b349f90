"""Files that people name: opened where they're ordinary ones, of a size that's asked before a byte is read.

A pipe is waited for, a device has no end, and a file that is nearly all hole is larger than any memory. What reads a
path in the main process, where no job's limits hold, opens it here.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.path_text import in_utf8

_BLOCK = 1 << 20
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotOrdinaryError(UsageError, OSError):
    """A path leads to what is no file that can be read to its end."""

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        OSError.__init__(self, errno.EINVAL, what, str(path))

    def __str__(self) -> str:
        """The message of the error."""
        return f"{in_utf8(str(self.filename))} {self.strerror}"


def kind_of_file(mode: int) -> str:
    """What a path leads to: "a pipe", "a socket", "a folder", "a device"; "" for an ordinary file.

    Args:
        mode: As of `os.stat`.
    """
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no file")


def open_ordinary(path: str | os.PathLike[str], most: int | None = None) -> BinaryIO:
    """Open a file for reading. No more of it should be read than the size that it has then (see `blocks`).

    Args:
        path: Links to ordinary files are followed.
        most: Bytes that it may have; None: any number, for what is read block by block.

    Raises:
        NotOrdinaryError: if it's a pipe, a device or a socket, or larger.
        OSError: if it's a folder, or can't be opened.
    """
    _check(path, Path(path).stat(), most)  # some devices act when they're opened

    def opened(name: str, _: int) -> int:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            _check(path, os.fstat(descriptor), most)  # another one may lie there by now
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    return open(path, "rb", opener=opened)  # who closes it is never in doubt, where Ctrl-C comes between, too


def blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a file that was opened here, at most as many as it says that it has.

    Files that the system makes up as they're read (below `/proc`) say 0, and some have no end.

    Args:
        stream: From `open_ordinary`.
    """
    left = os.fstat(stream.fileno()).st_size
    while left > 0 and (block := stream.read(min(_BLOCK, left))):
        left -= len(block)
        yield block


def read_ordinary(path: str | os.PathLike[str], most: int) -> bytes:
    """All bytes of a file.

    Args:
        path: Links to ordinary files are followed.
        most: That it may have.

    Raises:
        NotOrdinaryError: if it's a pipe, a device or a socket, or larger.
        OSError: if it's a folder, or can't be opened.
    """
    with open_ordinary(path, most) as stream:
        return b"".join(blocks(stream))


def _check(path: str | os.PathLike[str], found: os.stat_result, most: int | None) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if kind := kind_of_file(found.st_mode):
        raise NotOrdinaryError(path, f"is no file, but {kind}. Copy what it has into a file.")
    if most is not None and found.st_size > most:
        raise NotOrdinaryError(
            path, f"has {found.st_size:,} bytes, and {most:,} are the most that is read of such a file"
        )
