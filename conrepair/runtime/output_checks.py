"""What isn't replaced: refused before any work is done."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from conrepair.runtime.errors import UsageError
from conrepair.runtime.listing import Listing, is_folder
from conrepair.runtime.path_text import real_path

__all__ = ["check_free", "check_place"]


def check_place(path: Path, by: str, known: Listing | None) -> None:
    """Make sure that replacing what stands at a path loses nothing of a person's.

    Args:
        path: Where an output shall stand.
        by: What writes it.
        known: What an earlier command of that sort has listed, by paths in the folder around it.

    Raises:
        UsageError: if something else stands there, or what was listed was changed since.
        OSError: if it can't be looked into.
    """
    if not os.path.lexists(path):
        return
    if path.is_symlink():
        raise UsageError(f"{path} is a link, and stays one. Name what it leads to, or choose another output (-o).")
    with contextlib.suppress(FileNotFoundError):  # there's no current folder any more
        if real_path(Path.cwd()).is_relative_to(real_path(path)):
            raise UsageError(f"{path} is the current folder, or holds it, and would be replaced. Go elsewhere first.")
    if is_folder(path) and not any(path.iterdir()):
        _check_disk(path)
        return
    if known is None or path.name not in {*known.files, *known.folders}:
        raise UsageError(
            f"{path} exists and no {by} of this version wrote it, so it isn't replaced. "
            "Choose another output (-o), or another `name` in a configuration."
        )
    for top in known.tops:
        for name, own in known.walk(path.parent, top):
            found = path.parent / name
            if not own and (name in known.files or name in known.folders):
                raise _changed(found)
            if is_folder(found):
                _check_disk(found)
                if own and not os.access(found, os.W_OK | os.X_OK):
                    raise UsageError(f"{found} can't be written to. Choose another output (-o).")


def check_free(folder: Path, made: Listing, listed: Listing) -> None:
    """Make sure that files put into a folder replace none that isn't as it was written.

    Args:
        folder: The one around it.
        made: What is put there.
        listed: What may be replaced.

    Raises:
        UsageError: if something is in the way.
    """
    for name in sorted((*made.folders, *made.files)):
        place = folder / name
        if os.path.lexists(place) and not (is_folder(place) if name in made.folders else listed.owns(folder, name)):
            raise _changed(place)


def _check_disk(folder: Path) -> None:
    if folder.is_mount():
        raise UsageError(f"{folder} is where a disk is mounted, and can't be replaced. Name a folder in it (-o).")


def _changed(path: Path) -> UsageError:
    return UsageError(
        f"{path} isn't as conrepair wrote it, so it isn't replaced. Move it elsewhere, or choose another output (-o)."
    )
