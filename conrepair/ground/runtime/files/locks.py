"""Locks of open files: those of Unix, several of which may be shared; elsewhere filelock's, which can't be."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
from pathlib import Path
from typing import Any

fcntl: Any = None
with contextlib.suppress(ImportError):  # Windows hasn't it
    fcntl = importlib.import_module("fcntl")

LOCK = ".lock"
"""Suffix of a file that a folder is locked by where folders themselves can't be."""


def lock(descriptor: int, *, shared: bool = False, wait: bool = True, needless: bool = False) -> bool:
    """Hold a lock until the descriptor is closed, however its process ends.

    Args:
        descriptor: From `opened_for_lock`, or of a file.
        shared: Whether others may share it; where there are no such locks, nothing is held.
        wait: Whether to wait until others have let it go.
        needless: Whether it counts as held where the file system, or this Python, has no locks: nobody's can be in
            the way.

    Returns:
        Whether it's held, or needn't be; False where another has it.

    Raises:
        OSError: if the file system, or this Python, has no locks.
    """
    try:
        if fcntl is None:
            from filelock import lock_descriptor

            return shared or bool(lock_descriptor(descriptor, blocking=wait))
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if not needless or error.errno != errno.ENOSYS:
            raise
    return True


def opened_for_lock(path: Path) -> int:
    """A descriptor to lock a file or a folder by.

    Args:
        path: That exists; a folder that can't be opened is locked by a file beside it.

    Raises:
        OSError: if it doesn't exist.
    """
    if not path.is_dir():
        return os.open(path, os.O_RDWR)  # network file systems want it writable
    if fcntl is not None:
        return os.open(path, os.O_RDONLY)
    return os.open(_beside(path), os.O_RDWR | os.O_CREAT, 0o600)


def forget_lock(path: Path) -> None:
    """Remove what a folder that's gone was locked by.

    Args:
        path: Of the folder.
    """
    if fcntl is None and not path.exists():
        with contextlib.suppress(OSError):  # another process opens it just now
            _beside(path).unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}{LOCK}")
