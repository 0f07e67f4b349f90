"""What a command needs of the system before it reads a file, and what it's told where the system refuses it later."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from conrepair.ground.runtime.errors import ConrepairError, StorageError, UsageError

_FEWEST_FILES = 64  # that are open at a time: libraries, models, pipes to workers
_WANTED_FILES = 8192  # large outputs of a network are mapped, each of them an open file
_NO_FOLDER = "The current folder isn't there any more. Go to one that is (cd), and call it again."


def check_surroundings() -> None:
    """Refuse to start where nothing could work.

    Raises:
        UsageError: if the current folder is gone, or too few files may be open; what the system allows is asked for.
    """
    if not _is_somewhere():
        raise UsageError(_NO_FOLDER)
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard >= 0 else _WANTED_FILES  # below 0: any number
    if most < _FEWEST_FILES:
        raise UsageError(
            f"{hard} files may be open at a time, and {_FEWEST_FILES} are needed. Allow more (ulimit -n)."
        )
    if 0 <= soft < min(most, _WANTED_FILES):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, _WANTED_FILES), hard))


def refused_by_system(error: Exception) -> ConrepairError | None:
    """What to say of an error that is neither ours nor of a file; None where it's another.

    Args:
        error: That nobody expected.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number in {errno.EMFILE, errno.ENFILE}:
        return UsageError("Too many files are open at a time. Allow more (ulimit -n), or close other programs.")
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return StorageError("Memory ran out. Close other programs, allow more (ulimit -v), or use less data.")
    if number == errno.EAGAIN or (isinstance(error, RuntimeError) and "start new thread" in str(error)):
        return StorageError("The system starts no more processes or threads. Allow more (ulimit -u), or end others.")
    if isinstance(error, OSError):
        from conrepair.ground.runtime.files.whole import explain_write_error

        if not _is_somewhere():
            return UsageError(_NO_FOLDER)
        told = explain_write_error(error, *_temporary())
        return None if told is None else StorageError(told)
    return None


def _is_somewhere() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 (Path.cwd() is the same)
    except OSError:
        return False
    return True


def _temporary() -> list[Path]:
    """The folder of temporary files, where there's one."""
    import tempfile

    try:
        return [Path(tempfile.gettempdir())]
    except OSError:
        return [Path("/")]
