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
from collections.abc import Collection, Iterator
from pathlib import Path

from conrepair.runtime.listing import Listing, is_folder
from conrepair.runtime.scratch import locked
from conrepair.runtime.words import complain, shortened

NEW = "new"
"""Folder of what is written, in the scratch folder."""

_OLD, _LISTED = "old", "listed.json"
_NAME = 60


def put_all(scratch: Path, last: str, listed: Listing, earlier: Collection[str]) -> None:
    """Put everything that was written in its place; a file that's alone takes the place of another one at once.

    Args:
        scratch: Where it is; what was there before is there afterwards.
        last: Name of what's put there when all else is.
        listed: What is new, and what may be removed, by paths in the folder that's written to.
        earlier: Names of what goes in any case.

    Raises:
        OSError: if it can't be done.
    """
    parent, new = scratch.parent, scratch / NEW
    names = [*sorted({entry.name for entry in new.iterdir()} - {last}), last]
    there = [name for name in sorted({*names, *earlier}) if os.path.lexists(parent / name)]
    alone = there == names == [last] and listed.owns(parent, last)
    if there and not alone:
        if is_folder(parent / last) and is_folder(new / last):
            shutil.copymode(parent / last, new / last)
        (scratch / _OLD).mkdir()
        listed.write(scratch / _LISTED)
        for name in there:
            (parent / name).rename(scratch / _OLD / name)
    for name in names:
        (new / name).replace(parent / name)


def give_back(scratch: Path) -> None:
    """Move an earlier output back whose place wasn't taken, and beside the new one what holds somebody's files.

    Args:
        scratch: Of a command that has ended in the midst of it, or has come to its end.

    Raises:
        OSError: if that can't be done; nothing of it may be removed then.
    """
    listed = Listing.read(scratch / _LISTED)
    if listed is None or not all(is_folder(scratch / part) for part in (_OLD, NEW)):
        return  # nothing had been moved, or no command made it: a link would have somebody's files moved here
    parent = scratch.parent
    with turn(parent):
        unfinished = any((scratch / NEW).iterdir())
        for old in sorted((scratch / _OLD).iterdir()):
            place = parent / old.name
            if unfinished and listed.owns(parent, old.name):
                old.replace(place)  # what was put there hasn't come alone
            elif unfinished or not (_is_empty(old) or listed.holds_all(scratch / _OLD, old.name)):
                if os.path.lexists(place):
                    put_aside(old, place, listed.by)
                else:
                    old.rename(place)


def _is_empty(path: Path) -> bool:
    return is_folder(path) and not any(path.iterdir())


def put_aside(path: Path, place: Path, by: str) -> None:
    """Keep what no command of that sort wrote, or somebody changed, beside a place that's needed; it's said.

    Args:
        path: Where it is.
        place: Where it was.
        by: What writes there now.
    """
    names = (
        place.with_name(f"{place.name}.kept{f'-{number}' if number > 1 else ''}") for number in itertools.count(1)
    )
    free = next(name for name in names if not os.path.lexists(name))
    path.rename(free)
    was, now = shortened(place.name, _NAME), shortened(free.name, _NAME)
    complain(f"conrepair: kept in {place.parent}, as no {by} wrote it: {was} (now {now})")


@contextlib.contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Let one command at a time put outputs into a folder; each by itself on file systems without locks."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(locked(folder))
        yield
