"""Puts new files and folders in the place of earlier ones, which go as a whole, or stay under another name.

It begins when everything new is complete, in a scratch folder beside the place. Wherever a command ends meanwhile, by
an error or killed, `give_back` moves an earlier output back to its place: at once, or when the next command writes to
the same folder.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from conrepair.ground.runtime.files.listing import Listing, is_folder, names_in
from conrepair.ground.runtime.files.scratch import locked
from conrepair.ground.runtime.words import complain, shortened

NEW = "new"
"""Folder of what is written, in the scratch folder."""

_OLD, _LISTED = "old", "listed.txt"
_NAME = 60
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


def put_all(scratch: Path, last: str, listed: Listing, earlier: Collection[str]) -> None:
    """Put everything that was written in its place; what's alone and replaces another one does so in one step.

    Args:
        scratch: Where it is; what was there before is there afterwards.
        last: Name of what's put there when all else is.
        listed: What is new, and what may be removed, by paths in the folder that's written to, or in the one that's
            replaced.
        earlier: Names of what goes in any case.

    Raises:
        OSError: if it can't be done.
    """
    parent, new, old = scratch.parent, scratch / NEW, scratch / _OLD
    names = [*sorted(set(names_in(new)) - {last}), last]
    there = [name for name in sorted({*names, *earlier}) if os.path.lexists(parent / name)]
    if there:
        if is_folder(parent / last) and is_folder(new / last):
            shutil.copymode(parent / last, new / last)
        old.mkdir()
        listed.write(scratch / _LISTED)
        if there == names == [last]:
            (new / last).rename(old / last)
            if _exchanged(old / last, parent / last):
                return
            (old / last).rename(new / last)
        for name in there:
            (parent / name).rename(old / name)
    for name in names:
        (new / name).replace(parent / name)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two files or folders take each other's place, in one step; False where system or file system can't."""
    import ctypes  # most commands replace nothing

    exchange = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    paths = _HERE, os.fsencode(one), _HERE, os.fsencode(other)
    return exchange is not None and exchange(*paths, _EXCHANGE) == 0


def give_back(scratch: Path) -> None:
    """Move an earlier output back whose place wasn't taken, and beside the new one what holds somebody's files.

    Args:
        scratch: Of a command that has ended in the midst of it, or has come to its end.

    Raises:
        OSError: if that can't be done; nothing of it may be removed then.
    """
    if not all(is_folder(scratch / part) for part in (_OLD, NEW)):
        return  # nothing had been moved, or no command made it: a link would have somebody's files moved here
    listed, parent = Listing.read(scratch / _LISTED), scratch.parent
    with turn(parent):
        unfinished = bool(names_in(scratch / NEW))
        for old in sorted((scratch / _OLD).iterdir()):
            place = parent / old.name
            if unfinished and not is_folder(place) and listed.owns(parent, old.name):
                old.replace(place)  # what was put there hasn't come alone
            elif unfinished or not _is_ours(old, listed):
                if os.path.lexists(place):
                    _put_aside(old, listed.by)
                else:
                    old.rename(place)


def _is_ours(old: Path, listed: Listing) -> bool:
    inside = is_folder(old) and listed.owns_all(old)
    return inside or listed.owns_all(old.parent, [old.name])


def _put_aside(old: Path, by: str) -> None:
    """Keep what no command of that sort wrote, or somebody changed, beside a place that's needed; it's said."""
    parent, names = old.parents[2], (f"{old.name}.kept{f'-{number}' * (number > 1)}" for number in itertools.count(1))
    free = next(name for name in names if not os.path.lexists(parent / name))
    old.rename(parent / free)
    was, now = shortened(old.name, _NAME), shortened(free, _NAME)
    complain(f"conrepair: kept in {parent}, as no {by} wrote it: {was} (now {now})")


@contextlib.contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Let one command at a time put outputs into a folder; each by itself on file systems without locks."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(locked(folder))
        yield
