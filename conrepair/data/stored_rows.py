"""Arrays that come row by row, in .npy files that are open only while rows are written."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.runtime.archive import ArchiveError, is_archive, opened_archive

__all__ = ["StoredRows", "read_arrays"]


# Files of arrays (.npz, .npy), whose sizes are asked before any is read.


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Open a file of arrays; nothing in it is unpickled.

    Args:
        path: An .npz or .npy file.

    Returns:
        Arrays by name; an .npy file's by the empty name, memory-mapped. What isn't an array in an archive is bytes.

    Raises:
        ValueError: if it's damaged, holds pickles, or unpacks to more than it may (`conrepair.runtime.archive`).
        OSError: if it can't be read.
        EOFError: if it's empty.
    """
    if is_archive(path):
        with opened_archive(path, of_files=False):  # whose sizes are asked here
            pass
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        return {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (zipfile.BadZipFile, zlib.error) as error:
        raise ArchiveError(f"it's damaged: {error}") from error


Array = npt.NDArray[Any]


class StoredRows:
    """An .npy file of zeros, whose rows are written as they come; it needn't fit into memory.

    It isn't mapped: each map is an open file, of which a process may have about a thousand, and a disk that is full
    would end the process by a signal. Nothing waits for the disk: who reads the file sees what was written.

    Args:
        path: Of the file, which is made.
        dtype: Of its elements, which are no Python objects.
        shape: Rows first.

    Raises:
        ValueError: if they are.
        OSError: if it can't be written.

    Attributes:
        shape: As given.
    """

    def __init__(self, path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
        self._path, self._dtype, self.shape = path, np.dtype(dtype), shape
        if self._dtype.hasobject:
            raise ValueError("an array of Python objects has no rows of bytes")
        self._row = self._dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        with path.open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, header)
            self._start = stream.tell()
            stream.truncate(self._start + self._row * shape[0])

    def put(self, start: int, rows: Array) -> None:
        """Write rows.

        Args:
            start: The first one's place.
            rows: Of the same shape but for their number.

        Raises:
            OSError: if they can't be written.
        """
        content = np.ascontiguousarray(rows, self._dtype)
        with self._path.open("r+b", buffering=0) as stream:
            stream.seek(self._start + start * self._row)
            left = content.reshape(-1).view(np.uint8).data
            while left:
                left = left[stream.write(left) :]
