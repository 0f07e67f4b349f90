"""What somebody has put into a store's entries: it's kept where they are removed."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from conrepair.runtime.listing import is_folder
from conrepair.runtime.words import complain, shortened

__all__ = ["KEPT", "keep_others"]

KEPT = "kept"
_SHOWN, _NAME = 5, 60


def keep_others(entry: Path, ours: Collection[str]) -> None:
    """Move all files of an entry that aren't its own to a folder beside the entries, and say so.

    Args:
        entry: Of a store; something else may stand in its place.
        ours: Paths of its own files in it.
    """
    found = sorted(entry.rglob("*")) if is_folder(entry) else [entry]
    names = [path.relative_to(entry.parent).as_posix() for path in found if not is_folder(path)]
    others = [name for name in names if name.partition("/")[2] not in ours]
    if not others:
        return
    root = _free(entry.parent / KEPT)
    for name in others:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (entry.parent / name).rename(root / name)
    shown = ", ".join(shortened(name, _NAME) for name in others[:_SHOWN])
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    complain(f"conrepair: kept in {root}, as conrepair didn't write it: {shown}{more}")


def _free(folder: Path) -> Path:
    """A folder in this one that isn't there yet."""
    return next(place for number in range(1_000_000) if not os.path.lexists(place := folder / str(number)))
