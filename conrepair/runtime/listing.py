"""Lists of what a command has written among a person's files, by which it's told from theirs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conrepair.runtime.files import canonical_json, put_text, sha256_of
from conrepair.runtime.json_file import read_json_text, value_of

_VERSION = 1
_Stamp = tuple[int, str]  # size in bytes, SHA-256


@dataclass(frozen=True)
class Listing:
    """Files as they were written, and the folders that were made for them.

    What a list doesn't name, or names as it isn't any more, is somebody else's. Names of a list only answer whether a
    file that is there is meant; they never become paths, as a list may have been written by a stranger.

    Attributes:
        by: What wrote them.
        files: By their paths below the folder that the list is about, what each may be.
        folders: Paths of folders.
    """

    by: str
    files: Mapping[str, frozenset[_Stamp]] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()

    @classmethod
    def of(cls, by: str, root: Path, entries: Iterable[Path]) -> Listing:
        """List what has just been written.

        Args:
            by: What wrote it.
            root: The folder that the list is about.
            entries: Files and folders in it, with all that's below them; no links.
        """
        files: dict[str, frozenset[_Stamp]] = {}
        folders = set()
        for entry in entries:
            name = entry.relative_to(root).as_posix()
            if is_folder(entry):
                inside = cls.of(by, root, entry.iterdir())
                files.update(inside.files)
                folders |= {name} | inside.folders
            elif not entry.is_symlink():
                files[name] = frozenset({_stamp(entry)})
        return cls(by, files, frozenset(folders))

    @classmethod
    def read(cls, file: Path) -> Listing | None:
        """The list in a file; None where there's none that can be understood."""
        try:
            value = value_of(read_json_text(file)) if not file.is_symlink() else {}
            if value["version"] != _VERSION:
                return None
            files = {
                name: frozenset((int(size), str(sha256)) for size, sha256 in stamps)
                for name, stamps in value["files"].items()
            }
            return cls(str(value["by"]), files, frozenset(map(str, value["folders"])))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None

    def write(self, file: Path) -> None:
        """Write it: into a scratch folder, or for what takes its place as a whole.

        Raises:
            OSError: if it can't be written.
        """
        files = {name: sorted(map(list, stamps)) for name, stamps in sorted(self.files.items())}
        value = {"version": _VERSION, "by": self.by, "files": files, "folders": sorted(self.folders)}
        put_text(file, f"{canonical_json(value)}\n")

    def __or__(self, other: Listing) -> Listing:
        """Both: a file of either may be as either says."""
        names = {**self.files, **other.files}
        none: frozenset[_Stamp] = frozenset()
        files = {name: self.files.get(name, none) | other.files.get(name, none) for name in names}
        return Listing(self.by, files, self.folders | other.folders)

    def below(self, folder: str) -> Listing:
        """The same, told from the folder around the one that it's about."""
        files = {f"{folder}/{name}": stamps for name, stamps in self.files.items()}
        return Listing(self.by, files, frozenset({folder, *(f"{folder}/{name}" for name in self.folders)}))

    @property
    def tops(self) -> list[str]:
        """What it names in the folder that it's about, as names of entries of a folder."""
        return sorted({name.split("/")[0] for name in (*self.files, *self.folders)} - {"", ".", ".."})

    def owns(self, root: Path, name: str) -> bool:
        """Whether what lies there is the file that is meant, as it was written."""
        known, path = self.files.get(name, frozenset()), root / name
        try:
            found = path.lstat()
            sizes = {size for size, _ in known}
            return stat.S_ISREG(found.st_mode) and found.st_size in sizes and _stamp(path) in known
        except OSError:  # nobody may read it, or it isn't there
            return False

    def walk(self, root: Path, name: str) -> Iterator[tuple[str, bool]]:
        """What is there: each file or folder, and whether it was written by what wrote the list.

        Follows no link. Of somebody else's folder nothing but itself is told; ours come behind what's in them.

        Args:
            root: The folder that the list is about.
            name: What to look at.
        """
        if name in self.folders and is_folder(root / name):
            for inside in sorted(entry.name for entry in (root / name).iterdir()):
                yield from self.walk(root, f"{name}/{inside}")
            yield name, True
        elif os.path.lexists(root / name):
            yield name, self.owns(root, name)

    def holds_all(self, root: Path, name: str) -> bool:
        """Whether all that is there was written by what wrote the list, and is as it was."""
        return all(own for _, own in self.walk(root, name))


def is_folder(path: Path) -> bool:
    """Whether a folder is there, and not a link to one."""
    return path.is_dir() and not path.is_symlink()


def _stamp(path: Path) -> _Stamp:
    return path.stat().st_size, sha256_of(path)
