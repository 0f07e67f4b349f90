"""Files in a folder that somebody else has made: nothing is written or read through a link that leads out of it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from conrepair.runtime.errors import UsageError
from conrepair.runtime.path_text import path_problem, real_path
from conrepair.runtime.words import shortened

_SHOWN = 100


def place_in(folder: Path, name: str) -> Path:
    """Where a file is to be written: in the folder itself, whatever lies there already.

    Args:
        folder: Of somebody's; it may itself be named by a link.
        name: Of the file, relative, with `/`.

    Returns:
        The file's path. What a command writes there replaces a file, or nothing.

    Raises:
        UsageError: if a link, or what is no folder, is on the way, a folder or a link is in its place, or it leads
            out of the folder.
    """
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        raise UsageError(f"{shortened(name, _SHOWN)} leads out of {folder}, so nothing is written there.")
    if problem := path_problem(str(folder / name)):
        raise UsageError(f"{problem}, so nothing is written there.")
    place = folder
    for number, part in enumerate(parts, 1):
        place /= part
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            break  # nothing lies below it, either
        if stat.S_ISLNK(mode):
            raise UsageError(f"{place} is a link, and nothing is written through links. Remove it, or choose -o.")
        last = number == len(parts)
        if not (stat.S_ISREG(mode) if last else stat.S_ISDIR(mode)):
            what = "file" if last else "folder"
            raise UsageError(f"{place} is no {what}, so no {what} is written there. Remove it, or choose -o.")
    return folder / name


def lies_in(folder: Path, path: str | Path) -> bool:
    """Whether a file, or a folder with all in it, is there and lies in another folder, whatever links say.

    Args:
        folder: Of somebody's.
        path: Absolute, from a document.
    """
    if path_problem(str(path)) or ".." in Path(path).parts:
        return False
    inside = real_path(folder)
    if real_path(path) == inside or not real_path(path).is_relative_to(inside):
        return False
    return all(item.is_file() and real_path(item).is_relative_to(inside) for item in _files(Path(path)))


def _files(path: Path) -> Iterator[Path]:
    """A file, or all that lies in a folder and is no folder; links to folders count as what they are."""
    if not path.is_dir():
        yield path
        return
    yield from (item for item in path.rglob("*") if item.is_symlink() or not item.is_dir())
