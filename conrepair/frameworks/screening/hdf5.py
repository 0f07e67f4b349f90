"""HDF5: what a file of weights has no place for, found without reading any of its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py

from conrepair.runtime.archive import ArchiveError, most_unpacked

__all__ = ["check_hdf5", "is_hdf5"]

_MARK = b"\x89HDF\r\n\x1a\n"
_FILTERS = {1, 2, 3, 4, 5, 6, 32000}  # those of the library, and h5py's LZF; others are programs that it looks for
_MOST_OBJECTS = 1_000_000


def is_hdf5(path: Path) -> bool:
    """Whether a file begins as HDF5 does: the library also finds what begins later, behind something else."""
    with path.open("rb") as file:
        return file.read(len(_MARK)) == _MARK


def check_hdf5(file: Any, size: int) -> None:
    """Look through all groups and datasets of a file.

    Args:
        file: An `h5py.File`.
        size: Of the file in bytes.

    Raises:
        ArchiveError: if it reaches other files, needs filters that are programs, or unpacks to more than it may.
    """
    most = most_unpacked(size)
    whole = 0
    seen: set[Any] = set()
    pending = [file]
    while pending:
        group = pending.pop()
        for name in group:
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise ArchiveError(f"{_shown(name)} in it is a link to something else")
            item = group[name]
            identity = h5py.h5o.get_info(item.id).addr
            if identity in seen:
                continue
            seen.add(identity)
            if len(seen) > _MOST_OBJECTS:
                raise ArchiveError(f"it has more than {_MOST_OBJECTS} groups and datasets")
            if isinstance(item, h5py.Group):
                pending.append(item)
            elif isinstance(item, h5py.Dataset):
                _check_dataset(item, name)
                whole += item.size * item.dtype.itemsize if item.shape is not None else 0
                if whole > most:
                    raise ArchiveError(
                        f"its numbers take at least {whole / 2**30:.1f} GiB, and {most / 2**30:.1f} are the most for "
                        f"a file of {size / 2**20:.1f} MiB"
                    )


def _check_dataset(item: Any, name: str) -> None:
    properties = item.id.get_create_plist()
    if properties.get_external_count() or item.is_virtual:
        raise ArchiveError(f"the numbers of {_shown(name)} in it lie in another file")
    filters = {properties.get_filter(place)[0] for place in range(properties.get_nfilters())}
    if filters - _FILTERS:
        raise ArchiveError(f"{_shown(name)} in it is packed by a program that isn't in it")


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else f"{name[:57]}...")
