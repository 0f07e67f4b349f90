"""What a job that isn't finished has done so far, in a folder that outlives its process.

Lines are appended one by one, so that whatever stops the process costs at most the last of them. What is being tried
is noted too: whoever sees the process die by itself knows of what. The job may also be asked, by way of the folder,
to end early with what it has.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from conrepair.ground.runtime.files.ordinary_file import read_ordinary
from conrepair.ground.runtime.files.whole import in_place

_LINES, _STOP, _TRIED = "lines", "stop", "tried"
_LONGEST, _LARGEST = 1 << 20, 256 << 20  # bytes of a note, and of all lines


class Journal:
    """A set of lines on disk.

    Args:
        folder: Where they are; made when there's something to write. None: they are kept in memory only.
        whose: Tells several jobs apart that have the journal at the same time.
    """

    def __init__(self, folder: Path | None = None, whose: str = "") -> None:
        self._folder, self._whose = folder, whose
        self._lines = _read(folder / _LINES) if folder is not None else set()
        self._torn = folder is not None and _is_torn(folder / _LINES)

    def __contains__(self, line: str) -> bool:
        return line in self._lines

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: str) -> None:
        """Keep a line.

        Raises:
            OSError: if it can't be written.
        """
        self._lines.add(line)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            with open(self._folder / _LINES, "a", encoding="utf-8", opener=in_place) as stream:
                stream.write(f"\n{line}\n" if self._torn else f"{line}\n")
            self._torn = False

    @contextlib.contextmanager
    def trying(self, line: str) -> Iterator[None]:
        """Note that what a line stands for is being tried.

        Raises:
            OSError: if it can't be written.
        """
        if self._folder is None:
            yield
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        note = _note(self._folder, self._whose)
        note.write_text(line, encoding="utf-8")
        try:
            yield
        finally:
            note.unlink(missing_ok=True)

    @property
    def asked_to_end(self) -> bool:
        """Whether the job shall end with what it has."""
        return self._folder is not None and (self._folder / _STOP).exists()

    @staticmethod
    def remove(folder: Path) -> None:
        """Remove a journal's file."""
        shutil.rmtree(folder, ignore_errors=True)


def forget_tried(folder: Path, whose: str = "") -> None:
    """Forget what an earlier process was trying when it was stopped, which says nothing against it."""
    _note(folder, whose).unlink(missing_ok=True)


def blame(folder: Path, whose: str = "") -> bool:
    """Keep the line that was being tried when a journal's process died, so that it isn't tried again.

    Args:
        folder: Of the journal.
        whose: Of several jobs that have it.

    Returns:
        Whether there was one.
    """
    note = _note(folder, whose)
    with contextlib.suppress(OSError, ValueError):  # there's none, or it's none
        with open(note, encoding="utf-8", opener=in_place) as stream:
            line = stream.read(_LONGEST)
        Journal(folder).add(line)
        note.unlink()
        return True
    return False


def end_early(folder: Path, *, wanted: bool = True) -> None:
    """Ask the job of a journal to end with what it has.

    Args:
        folder: Of the journal.
        wanted: False takes an earlier wish back.
    """
    if not wanted:
        (folder / _STOP).unlink(missing_ok=True)
        return
    with contextlib.suppress(OSError), open(folder / _STOP, "a", opener=in_place):  # it may have just ended
        pass


def _note(folder: Path, whose: str) -> Path:
    return folder / f"{_TRIED}{whose}"


def _read(path: Path) -> set[str]:
    """Its whole lines."""
    try:
        text = read_ordinary(path, _LARGEST).decode(errors="replace")
    except FileNotFoundError:
        return set()
    return set(text.split("\n")[:-1])


def _is_torn(path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        content = read_ordinary(path, _LARGEST)
        return bool(content) and not content.endswith(b"\n")
    return False
