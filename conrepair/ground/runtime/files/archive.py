"""Zip files of strangers: read by rules under which all readers see the same, and written anew.

Readers disagree about an archive that isn't whole: which of two members of one name counts, whether a checksum is
compared, whether a name's capitals matter, what lies before, between and behind the members. What's read here is
refused if any of that leaves a choice; a copy of what was read is what others are given. APPNOTE.TXT of PKWARE
(6.3.10) describes the format.
"""

from __future__ import annotations

import contextlib
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from conrepair.ground.runtime.path_text import path_problem

_LEAST_UNPACKED, _TIMES_UNPACKED = 256 << 20, 8
_LEAST_TEXT = 16 << 20  # a text becomes objects, which take some 25 times of its size
_MOST_MEMBERS = 100_000
_HEADER = struct.Struct("<4sHHHHHIIIHH")
_FIRST, _DESCRIPTOR = b"PK\x03\x04", b"PK\x07\x08"
_HAS_DESCRIPTOR, _ENCRYPTED = 0x8, 0x1 | 0x40 | 0x2000
_END = struct.Struct("<4sHHHHIIH")
_LOCATOR_64, _END_64 = struct.Struct("<4sIQI"), struct.Struct("<4sQHHIIQQQQ")  # before it, where numbers have 64 bits
_LAST, _LAST_64, _FOUND_64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_CHUNK = 1 << 20
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, OverflowError, RuntimeError,
    ValueError,
)  # fmt: skip


class ArchiveError(ValueError):
    """An archive is damaged, ambiguous, or unpacks to more than it may."""


def is_archive(path: Path) -> bool:
    """Whether any reader would take a file for a zip archive: by how it begins, or by how it ends."""
    with path.open("rb") as file:
        begins = file.read(len(_FIRST)) == _FIRST
    return begins or zipfile.is_zipfile(path)


def check_unpacked(whole: int, size: int, what: str) -> None:
    """Refuse a file that unpacks to more than eight times of its size, and more than 256 MiB.

    Args:
        whole: Bytes that it would unpack to.
        size: Of the file, in bytes.
        what: What would have them, with its verb ("it unpacks to").

    Raises:
        ArchiveError: if it does.
    """
    if whole > (most := max(_LEAST_UNPACKED, _TIMES_UNPACKED * size)):
        raise ArchiveError(
            f"{what} {whole / 2**30:.1f} GiB (limit {most / 2**30:.1f}, for a file of {size / 2**20:.1f} MiB)"
        )


def parsed_json(text: Any, what: str) -> Any:
    """A text's value.

    Args:
        text: From a file of somebody's.
        what: Which text it is ("its configuration").

    Raises:
        ArchiveError: if it's no JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ArchiveError(f"{what} is no JSON: {error}") from error


@contextlib.contextmanager
def opened_archive(path: Path, *, of_files: bool = True) -> Iterator[Archive]:
    """Read what an archive lists, and check all of it but the members' content, which is checked as it's read.

    Args:
        path: A zip file.
        of_files: Whether its members are files by their names; else they may have any.

    Raises:
        ArchiveError: if it's damaged, readers could see different things in it, or it unpacks to more than it may.
        OSError: if it can't be read.
    """
    with path.open("rb") as file:
        yield Archive(file, of_files=of_files)


class Archive:
    """What's in a zip file that's whole.

    Args:
        file: That can be read at any place, and stays open.
        of_files: As of `opened_archive`.

    Attributes:
        sizes: Of all members in bytes, unpacked, by name, in the file's order; folders are left out.

    Raises:
        ArchiveError: as `opened_archive` does.
    """

    def __init__(self, file: IO[bytes], *, of_files: bool = True) -> None:
        with _told():
            count, behind = _checked_end(file)
            self._archive = zipfile.ZipFile(file)
            self._size = file.seek(0, 2)
            members = self._archive.infolist()
            if len(members) != count:
                raise ArchiveError(f"it lists {len(members)} members, and says that there are {count}")
            _check_names(members, of_files=of_files)
            _check_places(members, file, self._archive.start_dir, self._size - behind)
        self._members = {info.filename: info for info in members if not info.is_dir()}
        self.sizes = {name: info.file_size for name, info in self._members.items()}
        check_unpacked(sum(self.sizes.values()), self._size, "it unpacks to")

    def read(self, name: str) -> bytes:
        """A member's content.

        Args:
            name: Of a member.

        Raises:
            ArchiveError: if it's damaged.
        """
        with _told():
            return self._archive.read(self._members[name])

    def read_text(self, name: str) -> str:
        """A member that's a text, in UTF-8; it may be as large as the file, and 16 MiB in any case.

        Args:
            name: Of a member.

        Raises:
            ArchiveError: if it's damaged, no text, or larger.
        """
        if self.sizes[name] > (most := max(_LEAST_TEXT, self._size)):
            raise ArchiveError(
                f"{name} in it is a text of {self.sizes[name] / 2**20:.0f} MiB, and {most / 2**20:.0f} are the most"
            )
        with _told():
            return self.read(name).decode("utf-8")

    def check(self) -> None:
        """Read all members, and keep none.

        Raises:
            ArchiveError: if one is damaged.
        """
        with _told():
            for info in self._members.values():
                with self._archive.open(info) as source:
                    while source.read(_CHUNK):
                        pass

    def copy(self, path: Path, members: Mapping[str, bytes | None]) -> None:
        """Write an archive of some members, uncompressed.

        Args:
            path: Of the new file.
            members: By name, in the order that they get; a content that isn't None is written in a member's place.

        Raises:
            ArchiveError: if one of them is damaged.
        """
        with _told(), zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as copy:
            for name, content in members.items():
                new = zipfile.ZipInfo(name)
                if content is not None:
                    copy.writestr(new, content)
                    continue
                new.file_size = self.sizes[name]
                with self._archive.open(self._members[name]) as source, copy.open(new, "w") as target:
                    while chunk := source.read(_CHUNK):
                        target.write(chunk)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except ArchiveError:
        raise
    except _DAMAGED as error:
        raise ArchiveError(f"it's damaged: {str(error) or type(error).__name__}") from error


def _checked_end(file: IO[bytes]) -> tuple[int, int]:
    """How many members there are, and how many bytes behind the list of them, which may be long and isn't read."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END.size - _LOCATOR_64.size - _END_64.size))
    found = file.read()
    if len(found) < _END.size:
        raise ArchiveError("it's damaged: it's cut off")
    mark, _, _, _, count, _, _, comment = _END.unpack(found[-_END.size :])
    if mark != _LAST or comment:
        raise ArchiveError("it's damaged, or there's something behind its last member")
    behind = _END.size
    if len(found) == _END.size + _LOCATOR_64.size + _END_64.size and found[_END_64.size :].startswith(_FOUND_64):
        mark, *_, count, _, _ = _END_64.unpack(found[: _END_64.size])
        if mark != _LAST_64:
            raise ArchiveError("it's damaged, or there's something behind its last member")
        behind = len(found)
    if count > _MOST_MEMBERS:
        raise ArchiveError(f"it lists {count} members, and {_MOST_MEMBERS} are the most")
    return count, behind


def _check_names(members: list[zipfile.ZipInfo], *, of_files: bool) -> None:
    seen: set[str] = set()
    for info in members:
        name = info.filename
        parts = name.removesuffix("/").split("/")
        leads_out = "\\" in name or any(part in {"", ".", ".."} for part in parts)
        if of_files and (leads_out or path_problem(name) or not name.isprintable() or name != info.orig_filename):
            raise ArchiveError(f"{name!r} in it is no name of a file within it")
        if (name.casefold() if of_files else name) in seen:
            raise ArchiveError(f"{name} is in the zip file twice: libraries may read either of the two")
        seen.add(name.casefold() if of_files else name)
        if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
            raise ArchiveError(f"{name} in it is encrypted, or packed in a way that not all readers know")
        if info.is_dir() and info.file_size:
            raise ArchiveError(f"{name} in it is a folder with content of its own")


def _check_places(members: list[zipfile.ZipInfo], file: IO[bytes], listed_at: int, ends: int) -> None:
    """Refuse bytes that belong to no member: they'd be another archive for another reader."""
    expected = 0
    for info in sorted(members, key=lambda item: item.header_offset):
        if info.header_offset != expected:
            raise ArchiveError("the zip file holds bytes before or between its members: readers may see another file")
        file.seek(expected)
        mark, *_, name_size, extra_size = _HEADER.unpack(file.read(_HEADER.size))
        if mark != _FIRST:
            raise ArchiveError(f"{info.filename} isn't at the place that the zip file's index gives")
        expected += _HEADER.size + name_size + extra_size + info.compress_size
        if info.flag_bits & _HAS_DESCRIPTOR:
            expected += _descriptor_size(info, file, expected)
    listing = sum(46 + len(info.orig_filename.encode()) + len(info.extra) + len(info.comment) for info in members)
    if expected != listed_at or listed_at + listing != ends:
        raise ArchiveError("the zip file holds bytes behind its members: readers may see another file")


def _descriptor_size(info: zipfile.ZipInfo, file: IO[bytes], place: int) -> int:
    """Bytes of what stands behind a member whose size wasn't known when it was begun."""
    file.seek(place)
    found = file.read(24)
    for mark in (_DESCRIPTOR, b""):
        for sizes in ("<III", "<IQQ"):
            told = mark + struct.pack(
                sizes, info.CRC, info.compress_size & _mask(sizes), info.file_size & _mask(sizes)
            )
            if found.startswith(told):
                return len(told)
    raise ArchiveError(f"{info.filename} in it has other sizes or another checksum than the zip file's index gives")


def _mask(sizes: str) -> int:
    return 0xFFFFFFFF if sizes == "<III" else (1 << 64) - 1
