"""Files of arrays (.npz, .npy), whose sizes are asked before any is read."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.runtime.archive import ArchiveError, is_archive, opened_archive

__all__ = ["read_arrays"]


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
