"""Lists of what a command has written among a person's files, by which it's told from theirs."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from conrepair.ground.runtime.files.ordinary_file import read_ordinary
from conrepair.ground.runtime.files.whole import put_text, sha256_of

LIST = ".conrepair-files.txt"
"""The name of a list in a folder, and what the name of one beside a file ends in."""

_HEAD = "written whole by conrepair, as "
_MOST = 32 << 20  # bytes; an entry has about a hundred, and the largest audits write some hundred thousand files


@dataclass(frozen=True)
class Listing:
    """Files as they were written, and the folders that were made for them.

    What a list doesn't name, or names as it isn't any more, is somebody else's. A list may have been written by a
    stranger: what's in it is only looked up, and becomes no path.

    Attributes:
        by: What wrote them; "" where there's no list.
        entries: A line for each: SHA-256, size and name of a file, two dashes and the name of a folder. Names are
            paths below the folder that the list is about, as JSON. A file may be as any of its lines says.
    """

    by: str
    entries: frozenset[str] = frozenset()

    @classmethod
    def of(cls, by: str, root: Path) -> Listing:
        """List what has just been written, but for links.

        Args:
            by: What wrote it.
            root: The folder that it's in.
        """
        outlines = ((name, _outline(name, found)) for name, found in walk(root))
        return cls(by, frozenset(f"{_content(root / name)} {outline}" for name, outline in outlines if outline))

    @classmethod
    def read(cls, file: Path) -> Listing:
        """The list in a file, of which no more is read than a list may have."""
        try:
            text = b"" if file.is_symlink() else read_ordinary(file, _MOST)
            head, *entries = text.decode("ascii").splitlines()
        except (OSError, ValueError):
            return cls("")
        return cls(head.removeprefix(_HEAD), frozenset(entries)) if head.startswith(_HEAD) else cls("")

    def write(self, file: Path) -> None:
        """Write it: into a scratch folder, or for what takes its place as a whole.

        Raises:
            OSError: if it can't be written.
        """
        file.unlink(missing_ok=True)  # it came along with a folder from elsewhere, as a link perhaps
        put_text(file, "\n".join([f"{_HEAD}{self.by}", *sorted(self.entries), ""]))

    def __or__(self, other: Listing) -> Listing:
        """Both: a file may be as either says."""
        return Listing(self.by, self.entries | other.entries)

    def updated(self, other: Listing) -> Listing:
        """Both, where a file is as the other one says."""
        kept = (entry for entry in self.entries if _name(entry) not in other._names)
        return Listing(other.by, other.entries.union(kept))

    def names(self, name: str) -> bool:
        """Whether it names a file or a folder, however that may be now."""
        return json.dumps(name) in self._names

    def resembles(self, name: str, found: os.stat_result) -> bool:
        """Whether what was found is a folder that it names, or a file of the size that it says."""
        return _outline(name, found) in self._outlines

    def owns(self, root: Path, name: str) -> bool:
        """Whether what lies there is what is meant: a file as it was written, or a folder, whatever is in it."""
        path = root / name
        try:
            outline = _outline(name, path.lstat())
            return outline in self._outlines and f"{_content(path)} {outline}" in self.entries
        except OSError:  # nobody may read it, or it isn't there
            return False

    def owns_all(self, root: Path, names: Iterable[str] | None = None) -> bool:
        """The same of all that is there by these names and below them; of all that's in the folder."""
        return all(self.owns(root, name) for name, _ in walk(root, names))

    @cached_property
    def _outlines(self) -> frozenset[str]:
        return frozenset(entry.partition(" ")[2] for entry in self.entries)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(map(_name, self.entries))


def names_in(folder: Path) -> list[str]:
    """Names of the files and folders in a folder."""
    return [entry.name for entry in os.scandir(folder)]


def walk(root: Path, names: Iterable[str] | None = None) -> Iterator[tuple[str, os.stat_result]]:
    """What is there: a folder, then what's in it, by name; but for lists. No link is followed.

    Args:
        root: A folder.
        names: Of files and folders in it, where they are there; None: of all.
    """
    waiting = sorted(names_in(root) if names is None else names, reverse=True)
    while waiting:
        name = waiting.pop()
        try:
            found = os.lstat(f"{root}/{name}")
        except FileNotFoundError:
            continue
        if name.endswith(LIST) and stat.S_ISREG(found.st_mode):
            continue
        yield name, found
        if stat.S_ISDIR(found.st_mode):
            waiting += sorted((f"{name}/{inside}" for inside in names_in(root / name)), reverse=True)


def is_folder(path: Path) -> bool:
    """Whether a folder is there, and not a link to one."""
    return path.is_dir() and not path.is_symlink()


def _name(entry: str) -> str:
    return entry[entry.find('"') :]


def _outline(name: str, found: os.stat_result) -> str | None:
    """An entry without its hash; None for what is neither a file nor a folder."""
    if stat.S_ISDIR(found.st_mode):
        return f"- {json.dumps(name)}"
    return f"{found.st_size} {json.dumps(name)}" if stat.S_ISREG(found.st_mode) else None


def _content(path: Path) -> str:
    return "-" if path.is_dir() else sha256_of(path)
