"""Puts new files and folders in the place of earlier ones, in which all stays that isn't listed as a command's own.

It begins when everything new is complete, in a scratch folder beside the place. Others' files are moved into the new
folder before that takes the old one's place. Wherever a command ends meanwhile, by an error or killed, `give_back`
moves others' files back, and an earlier output: at once, or when the next command writes to the same folder.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from conrepair.runtime.listing import Listing, is_folder
from conrepair.runtime.scratch import locked

__all__ = ["NEW", "Kept", "give_back", "put_all", "put_into", "turn"]

NEW = "new"
"""Folder of what is written, in the scratch folder."""

_OLD, _LISTED = "old", "listed.json"
Kept = tuple[str, Path]  # something of somebody's, as it was called and where it is now


def put_all(scratch: Path, last: str, listed: Listing) -> list[Kept]:
    """Put everything that was written in its place.

    Args:
        scratch: Where it is.
        last: Name of what's put there when all else is.
        listed: What may be replaced, and what is new, by paths in the folder that's written to.

    Returns:
        What was kept of others.

    Raises:
        OSError: if it can't be done.
    """
    others = sorted(entry.name for entry in (scratch / NEW).iterdir() if entry.name != last)
    names, kept = (*others, last), []
    there = [name for name in names if os.path.lexists(scratch.parent / name)]
    if there:
        (scratch / _OLD).mkdir()
        listed.write(scratch / _LISTED)
    for name in there:
        kept += _make_way(scratch, name, listed, alone=not others)
    for name in names:
        (scratch / NEW / name).replace(scratch.parent / name)
    return kept


def put_into(scratch: Path, made: Listing, listed: Listing) -> list[Kept]:
    """Put files that were written among those that are there, one after the other; folders stay the same.

    Args:
        scratch: Where they are.
        made: They, by paths in the folder that's written to.
        listed: What may be replaced.

    Returns:
        What was kept of others: it was in the way.

    Raises:
        OSError: if it can't be done.
    """
    parent, kept = scratch.parent, []
    for name in sorted((*made.folders, *made.files)):  # a folder before what's in it
        place, folder = parent / name, name in made.folders
        if os.path.lexists(place) and not (is_folder(place) if folder else listed.owns(parent, name)):
            aside = _free(place)
            place.rename(aside)
            kept.append((name, aside))
        if folder:
            place.mkdir(exist_ok=True)
        else:
            (scratch / NEW / name).replace(place)
    return kept


def _make_way(scratch: Path, name: str, listed: Listing, *, alone: bool) -> list[Kept]:
    """Take what stands in an entry's place away, of which all stays that isn't listed.

    A file that is written alone takes the place of another one at once.
    """
    parent = scratch.parent
    new, place, kept = scratch / NEW / name, parent / name, []
    if is_folder(place) and is_folder(new):
        kept = _carry(parent, scratch / NEW, name, listed)
        shutil.copymode(place, new)
        place.rename(scratch / _OLD / name)
    elif listed.strangers(parent, name):
        aside = _free(place)
        place.rename(aside)
        kept = [(name, aside)]
    elif is_folder(place) or (not alone):
        place.rename(scratch / _OLD / name)
    return kept


def _carry(root: Path, to: Path, name: str, listed: Listing) -> list[Kept]:
    """Move all that isn't listed to the same places elsewhere; what has none there last, as it gets another name."""
    strangers = listed.strangers(root, name)
    kept = []
    for stranger in sorted(strangers, key=lambda name: not _is_free(to, name)):
        here, *folders = to, *stranger.split("/")[:-1]
        for folder in folders:
            here = here / folder
            here = here if is_folder(here) else _free(here)
            here.mkdir(exist_ok=True)
        place = _free(here / stranger.rpartition("/")[2])
        (root / stranger).rename(place)
        kept.append((stranger, place))
    return kept


def give_back(scratch: Path) -> None:
    """Move what isn't listed back to where it was, and an earlier output whose place is empty.

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
        for old in sorted((scratch / _OLD).iterdir()) if any((scratch / NEW).iterdir()) else ():
            if not os.path.lexists(parent / old.name) or listed.owns(parent, old.name):
                old.replace(parent / old.name)
        for part in (_OLD, NEW):
            for entry in sorted((scratch / part).iterdir()):
                _carry(scratch / part, parent, entry.name, listed)


def _is_free(folder: Path, name: str) -> bool:
    """Whether something can be put there: nothing is there, nor anything but folders above it."""
    head, _, last = name.partition("/")
    place = folder / head
    return _is_free(place, last) if last and is_folder(place) else not os.path.lexists(place)


def _free(path: Path) -> Path:
    """A path where nothing is: this one, or one beside it."""
    names = (path.with_name(f"{path.name}.kept{f'-{number}' if number > 1 else ''}") for number in itertools.count(1))
    return next(name for name in itertools.chain([path], names) if not os.path.lexists(name))


@contextlib.contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Let one command at a time put outputs into a folder; each by itself on file systems without locks."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(locked(folder))
        yield
