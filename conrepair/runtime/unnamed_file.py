"""A file without a name, written once and then mapped: the system reads what's used, and may drop it again."""

from __future__ import annotations

import mmap
import tempfile

_ALIGNMENT = 64  # bytes; what kernels want numbers to begin at


class UnnamedFile:
    """Bytes in the folder for temporary files, gone with the last view of them."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it's mapped)
        self._size = 0

    def append(self, content: memoryview) -> int:
        """Write bytes behind the others, aligned; returns where they begin."""
        start = -(-self._size // _ALIGNMENT) * _ALIGNMENT
        self._file.write(bytes(start - self._size))
        self._file.write(content)
        self._size = start + len(content)
        return start

    def mapped(self) -> memoryview:
        """All bytes, for reading only; nothing can be appended any more."""
        with self._file:
            self._file.flush()
            return map_file(self._file.fileno()) if self._size else memoryview(b"")


def map_file(descriptor: int) -> memoryview:
    """The bytes of a file, for reading only; it's mapped while somebody holds a view of them.

    Raises:
        ValueError: if it's empty.
    """
    return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
