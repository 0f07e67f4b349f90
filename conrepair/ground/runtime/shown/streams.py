"""Standard output and error that break no command: closed, on a full disk, or into a pipe that nobody reads."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

_NOBODY_READS = {errno.EPIPE, errno.EBADF, errno.EIO}  # EIO: of a terminal that was closed
_ANY_NAME = "backslashreplace"  # what the encoding lacks, and a file's name that isn't UTF-8, as escapes


class _Lenient(io.FileIO):
    """A descriptor; what can't be written there is dropped, and why is known.

    Attributes:
        failure: The first error.
        written: When something was written last, in seconds of `time.monotonic`.
    """

    failure: OSError | None = None
    written = 0.0

    def write(self, content: Any) -> int:
        """Write bytes; how many are gone, wherever to."""
        self.written = time.monotonic()
        if self.failure is None:
            try:
                return super().write(content) or 0
            except OSError as error:
                self.failure = error
        return memoryview(content).nbytes


class Streams:
    """What became of a command's words.

    Args:
        output: Standard output, where it's a descriptor.
        error: Standard error, the same.
    """

    def __init__(self, output: _Lenient | None = None, error: _Lenient | None = None) -> None:
        self._output, self._error = output, error

    @property
    def problem(self) -> str:
        """Why not all of the result could be written, as a sentence; "" where it was, or nobody wanted it."""
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        failure = None if self._output is None else self._output.failure
        if failure is None or failure.errno in _NOBODY_READS:
            return ""
        return f"standard output can't be written ({failure.strerror}), so its end is missing. Redirect it elsewhere."

    @property
    def spoke(self) -> float:
        """When something was said last, in seconds of `time.monotonic`; 0 where it isn't known."""
        return max((stream.written for stream in (self._output, self._error) if stream is not None), default=0.0)


@contextlib.contextmanager
def standard_streams() -> Iterator[Streams]:
    """Inside the block no word that can't be written ends the command, and names of any encoding can be printed.

    A standard descriptor that is closed is the null device: otherwise the next file that's opened would take its
    number, and what libraries print would be written there.
    """
    for number in range(3):
        _fill(number)
    kept = sys.stdout, sys.stderr
    output, sys.stdout = _lenient(kept[0], 1)
    error, sys.stderr = _lenient(kept[1], 2)
    try:
        yield Streams(output, error)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        sys.stdout, sys.stderr = kept


def _fill(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        with contextlib.suppress(OSError):
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, number)
            if opened != number:
                os.close(opened)


def _lenient(stream: Any, number: int) -> tuple[_Lenient | None, Any]:
    """A stream that writes to the same descriptor, and its descriptor; as it is where it's somebody else's."""
    if stream is not None and _descriptor(stream) != number:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ANY_NAME)
        return None, stream
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    raw = _Lenient(number, "w", closefd=False)
    text = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding if stream is not None else "utf-8",
        errors=_ANY_NAME,
        line_buffering=number == 2 or raw.isatty(),
    )
    return raw, text


def _descriptor(stream: Any) -> int:
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return -1
