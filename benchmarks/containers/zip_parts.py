"""Zip files of which each part can say something else than the others."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

__all__ = ["Ending", "Entry", "written"]


@dataclass
class Entry:
    """A member, as it's told where it is (`local_`) and in the list at the end (`listed_`); None is the truth.

    Attributes:
        name: Of the file, with folders.
        content: Unpacked.
        deflated: Whether it's packed.
        place: Of the member that the list points to, by its number, where that's another; None for itself.
        absent: "" or which of both it's missing from: "local" or "listed".
    """

    name: bytes
    content: bytes
    deflated: bool = False
    local_name: bytes | None = None
    listed_name: bytes | None = None
    local_crc: int | None = None
    listed_crc: int | None = None
    local_size: int | None = None
    listed_size: int | None = None
    listed_packed: int | None = None
    local_method: int | None = None
    listed_method: int | None = None
    flags: int = 0x800
    descriptor: bool = False
    local_extra: bytes = b""
    listed_extra: bytes = b""
    comment: bytes = b""
    place: int | None = None
    offset: int = 0
    absent: str = ""


@dataclass
class Ending:
    """What stands before, between, behind, and in the end of an archive."""

    before: bytes = b""
    between: bytes = b""
    comment: bytes = b""
    behind: bytes = b""
    count: int = 0
    shift: int = 0
    order: list[int] = field(default_factory=list)


def written(entries: list[Entry], ending: Ending) -> bytes:
    """The archive.

    Args:
        entries: In the order that they lie in.
        ending: And the rest.
    """
    data = bytearray(ending.before)
    offsets, packed = [], []
    for entry in entries:
        offsets.append(len(data))
        content = _deflated(entry.content) if entry.deflated else entry.content
        packed.append(content)
        if entry.absent == "local":
            continue
        name = entry.name if entry.local_name is None else entry.local_name
        method = 8 if entry.deflated else 0
        crc, size = zlib.crc32(entry.content), len(entry.content)
        flags = entry.flags | (8 if entry.descriptor else 0)
        told = (0, 0, 0) if entry.descriptor else (crc, len(content), size)
        data += struct.pack(
            "<4sHHHHHIIIHH", b"PK\x03\x04", 20, flags & 0xFFFF, _or(entry.local_method, method), 0, 0x21,
            _or(entry.local_crc, told[0]), told[1], _or(entry.local_size, told[2]), len(name), len(entry.local_extra),
        )  # fmt: skip
        data += name + entry.local_extra + content
        if entry.descriptor:
            data += struct.pack("<4sIII", b"PK\x07\x08", crc, len(content), size)
    data += ending.between
    begins = len(data)
    count = 0
    for number in ending.order or range(len(entries)):
        entry = entries[number]
        if entry.absent == "listed":
            continue
        count += 1
        other = entries[number if entry.place is None else entry.place]
        content = packed[number if entry.place is None else entry.place]
        name = entry.name if entry.listed_name is None else entry.listed_name
        data += struct.pack(
            "<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 20, 20, (entry.flags | (8 if entry.descriptor else 0)) & 0xFFFF,
            _or(entry.listed_method, 8 if other.deflated else 0), 0, 0x21,
            _or(entry.listed_crc, zlib.crc32(other.content)), _or(entry.listed_packed, len(content)),
            _or(entry.listed_size, len(other.content)), len(name), len(entry.listed_extra), len(entry.comment), 0, 0,
            0,
            max(0, offsets[number if entry.place is None else entry.place] + entry.offset),
        )  # fmt: skip
        data += name + entry.listed_extra + entry.comment
    told = max(0, count + ending.count)
    data += struct.pack(
        "<4sHHHHIIH", b"PK\x05\x06", 0, 0, told, told, len(data) - begins, max(0, begins + ending.shift),
        len(ending.comment),
    )  # fmt: skip
    return bytes(data + ending.comment + ending.behind)


def _or(told: int | None, true: int) -> int:
    return (true if told is None else told) & 0xFFFFFFFF


def _deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()
