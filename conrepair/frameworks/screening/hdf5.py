"""HDF5: what a file of weights has no place for, found without reading any of its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from h5py import h5d, h5g, h5l, h5o

from conrepair.frameworks.screening.admission import shown
from conrepair.runtime.archive import ArchiveError, check_unpacked

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
        file: An `h5py.File`; its lower interface is used, which takes a third of the time.
        size: Of the file in bytes.

    Raises:
        ArchiveError: if it reaches other files, needs filters that are programs, or unpacks to more than it may.
    """
    whole = 0
    seen: set[int] = set()
    pending = [file.id]
    while pending:
        group = pending.pop()
        for name in group:
            if group.links.get_info(name).type != h5l.TYPE_HARD:
                raise ArchiveError(f"{_shown(name)} in it is a link to something else")
            item = h5o.open(group, name)
            place = h5o.get_info(item).addr
            if place in seen:
                continue
            seen.add(place)
            if len(seen) > _MOST_OBJECTS:
                raise ArchiveError(f"it has more than {_MOST_OBJECTS} groups and datasets")
            if isinstance(item, h5g.GroupID):
                pending.append(item)
            elif isinstance(item, h5d.DatasetID):
                whole += _checked_size(item, name)
                check_unpacked(whole, size, "its numbers take at least")


def _checked_size(item: Any, name: bytes) -> int:
    """Bytes of a dataset's numbers."""
    properties = item.get_create_plist()
    if properties.get_external_count() or properties.get_layout() == h5d.VIRTUAL:
        raise ArchiveError(f"the numbers of {_shown(name)} in it lie in another file")
    if any(properties.get_filter(place)[0] not in _FILTERS for place in range(properties.get_nfilters())):
        raise ArchiveError(f"{_shown(name)} in it is packed by a program that isn't in it")
    return int(item.get_space().get_simple_extent_npoints()) * int(item.get_type().get_size())


def _shown(name: bytes) -> str:
    return repr(shown(name.decode(errors="backslashreplace")))
