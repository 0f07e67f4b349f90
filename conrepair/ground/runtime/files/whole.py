"""Files that appear whole or not at all, and their hashes."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from conrepair.ground.runtime.errors import StorageError
from conrepair.ground.runtime.files.ordinary_file import blocks, open_ordinary
from conrepair.ground.runtime.files.scratch import SCRATCH, scratch_folder
from conrepair.ground.runtime.shown.heartbeat import at_work, far

# A file or folder, and what it holds.


@dataclass(frozen=True)
class HashedPath:
    """A file or folder on disk.

    Attributes:
        path: Where it is.
        sha256: Of what it holds: a job's key goes by that.
    """

    path: str
    sha256: str


_LARGE = 16 << 20  # bytes from which on a file isn't hashed again as long as the system says that it's the same
_TICK = 2_000_000_000  # nanoseconds; of the coarsest clock of a file system
HASHES: dict[str, str] = {}
"""Of large files that this process has read, by what the system said of them then; workers are told them."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_BYTES = 1 << 20
_WRITING = ".conrepair-file-"  # releases that kept earlier outputs in such folders called them otherwise
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


def sha256_of(path: Path) -> str:
    """Hash a file, or a folder as the sorted list of its files' names and hashes.

    Args:
        path: A file or folder, of which pipes and devices aren't part.

    Returns:
        64 hexadecimal digits.

    Raises:
        NotOrdinaryError: if it's a pipe or a device, which have no end.
    """
    if path.is_dir():
        digest = hashlib.sha256()
        for file in sorted(path.rglob("*")):
            if file.is_file():
                digest.update(f"{file.relative_to(path).as_posix()}\0{sha256_of(file)}\n".encode())
        return digest.hexdigest()
    with open_ordinary(path) as stream, at_work(f"the hash of {path.name}"):
        state = _state_of(stream)
        if str(state) in HASHES:
            return HASHES[str(state)]
        digest, (_, _, size, *times) = hashlib.sha256(), state
        for block in blocks(stream):
            digest.update(block)
            if size >= _LARGE:
                far(f"{stream.tell() >> 20} of {size >> 20} MiB")
        # Two changes of one tick of the clock look alike.
        if size >= _LARGE and time.time_ns() - max(times) > _TICK and state == _state_of(stream):
            HASHES[str(state)] = digest.hexdigest()
    return digest.hexdigest()


def _state_of(stream: BinaryIO) -> tuple[int, ...]:
    """What the system says of a file, which is another once somebody has written to it."""
    found = os.fstat(stream.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def canonical_json(value: Any, *, strict: bool = True) -> str:
    """Serialize so that equal values give equal text: sorted keys, no white space; strictly, no NaN or infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=not strict)


def explain_write_error(error: BaseException, *places: Path) -> str | None:
    """Say in words that a write failed for want of space or permission.

    Native writers (HDF5, TensorFlow) wrap the operating system's error in their own type, so the text is
    looked at as well as `errno`.

    Args:
        error: What was raised.
        *places: The folders that were written to.

    Returns:
        The explanation, or None when the error is about something else.
    """
    number = error.errno if isinstance(error, OSError) else None
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 (an exception of somebody's that can't even be printed)
        return None
    if number in _READ_ONLY and isinstance(error, OSError) and error.filename:
        return (
            f"{error.filename} can't be written ({os.strerror(number or 0)}). "
            "Choose another output folder (`output` in the configuration, or -o)."
        )
    if number in _NO_ROOM or os.strerror(errno.ENOSPC) in text or os.strerror(errno.EFBIG) in text:
        return _no_room(_fullest(places))
    return full_disk(*places)  # some writers say only that they could not write


def full_disk(*places: Path) -> str | None:
    """Say in words that a disk is full.

    Args:
        *places: Folders that were written to.

    Returns:
        The explanation, or None when all have room.
    """
    where = _fullest(places)
    return _no_room(where) if _free_bytes(where) < _FULL_BYTES else None


def _fullest(places: Sequence[Path]) -> Path:
    """Where there's least room: who couldn't write says seldom where."""
    return min(places, key=_free_bytes)


def _no_room(where: Path) -> str:
    free = f"no space left to write below {where} ({_free_bytes(where) / 2**20:.0f} MiB free)"
    if _is_temporary(where):
        return f"{free}, where temporary files are. Free some space there, or set TMPDIR to a folder on another disk."
    return (
        f"{free}. Nothing half-written was kept. Free some space there, or set `output` in the configuration (or -o) "
        "to another disk."
    )


def _is_temporary(where: Path) -> bool:
    """Whether a folder is that of temporary files, or one that this program makes there."""
    temporary = Path(tempfile.gettempdir())
    if not where.is_relative_to(temporary):
        return False
    inside = where.relative_to(temporary).parts
    return not inside or inside[0].startswith(SCRATCH)


def _free_bytes(where: Path) -> int:
    """Free space of the disk that holds `where`, or the nearest folder above it that exists."""
    for folder in (where, *where.parents):
        with contextlib.suppress(OSError):
            return shutil.disk_usage(folder).free
    return _FULL_BYTES


def in_place(path: str, flags: int) -> int:
    """An opener for files in folders that a job writes to: it follows no link that was left, and awaits no pipe.

    Raises:
        OSError: if the path is a link.
    """
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)


def make_folder(path: Path) -> None:
    """Make a folder for outputs, with its parents.

    Raises:
        StorageError: if something that is no folder is in the way, or it can't be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        explanation = explain_write_error(error, path.parent)
        raise StorageError(
            explanation
            or f"the output folder {path} can't be made: {error.strerror}. Choose another (`output`, or -o)."
        ) from error


@contextlib.contextmanager
def storage_error(where: Path) -> Iterator[None]:
    """Turn "disk full" and "read-only" inside the block into `StorageError`."""
    try:
        yield
    except OSError as error:
        explanation = explain_write_error(error, where)
        if explanation is None:
            raise
        raise StorageError(explanation) from error


@contextlib.contextmanager
def whole_output(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it into place when the block succeeds.

    Works for a file, which replaces another one, and for a folder, which replaces none. For places that are the
    program's own; among a person's files `conrepair.ground.runtime.files.outputs.Output` writes. On any error
    nothing is left.

    Args:
        path: Where the result shall stand.

    Raises:
        StorageError: if it can't be written.
    """
    with storage_error(path.parent):
        make_folder(path.parent)
        with scratch_folder(path.parent, _WRITING) as scratch:
            temporary = scratch / path.name
            yield temporary
            if not temporary.exists():
                raise FileNotFoundError(errno.ENOENT, "nothing was written", str(path))
            temporary.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write `text` (UTF-8) to `path` as a whole."""
    with whole_output(path) as temporary:
        put_text(temporary, text)


def put_text(path: Path, text: str) -> None:
    r"""Write `text` (UTF-8) into a folder that appears whole; what UTF-8 lacks (half a surrogate) as `\udc80`."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` as indented JSON, as a whole; NaN and infinities are refused."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def copy_whole(source: Path, destination: Path) -> None:
    """Copy a file or a folder to `destination`, which appears whole.

    A copy and not a link: what a person does to a file of the run must not reach the store, nor another run's output.
    """
    with whole_output(destination) as temporary:
        if source.is_dir():
            shutil.copytree(source, temporary)
        else:
            shutil.copyfile(source, temporary)


def size_below(folder: str | Path) -> int:
    """What lies below, in bytes; follows no link. Thousands of entries are looked at behind a command.

    Args:
        folder: Which.
    """
    with os.scandir(folder) as items:
        return sum(
            size_below(item.path) if item.is_dir(follow_symlinks=False) else item.stat(follow_symlinks=False).st_size
            for item in items
        )
