"""Keep a store below a size: entries are removed that nobody has asked for for longest."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from conrepair.ground.runtime.files.store import RECORD, Store
from conrepair.ground.runtime.files.whole import size_below

_ENTRY = re.compile(r"[a-z_-]+-[0-9a-f]{40}")  # a folder that somebody names for a store may hold other things


@dataclass(frozen=True)
class StoredEntry:
    """An entry of the store, with its size.

    Attributes:
        folder: Where it is.
        size: In bytes.
        asked: When it was made, or asked for last, in seconds; 0 of one that isn't whole.
    """

    folder: Path
    size: int
    asked: float

    @property
    def kind(self) -> str:
        """The kind of the entry."""
        return self.folder.name.rpartition("-")[0]


def entries(root: Path) -> list[StoredEntry]:
    """All entries of a store, those first that nobody has asked for for longest.

    Args:
        root: Of the store, which need not be there.
    """
    folders = root.iterdir() if root.is_dir() else ()
    found = [_held(folder) for folder in folders if _ENTRY.fullmatch(folder.name) and (folder / RECORD).is_file()]
    return sorted(found, key=lambda item: item.asked)


def trim(store: Store, limit: int) -> bool:
    """Remove entries until the others take no more than a limit, unless another run uses the store.

    Args:
        store: Of which this run needs nothing any more.
        limit: In bytes.

    Returns:
        Whether no other run uses it.
    """
    with store.alone() as alone:
        held = entries(store.root) if alone else []
        size = sum(item.size for item in held)
        for item in held:
            if size <= limit:
                break
            store.replace(item.folder)
            size -= item.size
    return alone


def adopt(store: Store, other: Store) -> None:
    """Move another store's entries to where those of the same names are, unless another run uses the store.

    Args:
        store: Gets them.
        other: On the same disk; this run needs nothing of it any more.
    """
    with store.alone() as alone:
        for item in entries(other.root) if alone else ():
            store.replace(store.root / item.folder.name, item.folder)


def _held(folder: Path) -> StoredEntry:
    size, asked = 0, 0.0
    with contextlib.suppress(OSError):  # removed meanwhile
        size = size_below(folder)
        asked = folder.lstat().st_mtime
    return StoredEntry(folder, size, asked)
