"""The files that TFLite models carry behind everything else, as an archive: labels and the like.

TFLite Metadata appends a zip to the model, whose directory says where each file stands. Tools write these places from
the start of the model ("a" of Python's zipfile) or from that of the archive; both are zips.
Format: PKWARE, APPNOTE.TXT, "End of central directory record" and "Central directory structure".
"""

from __future__ import annotations

import mmap
import struct
import zipfile
from dataclasses import dataclass
from typing import IO, cast

from conrepair.formats.editing.editor import NotEditableError

_ALIGNMENT = 16  # readers map uncompressed files
_END = b"PK\x05\x06"
_END_FORMAT = struct.Struct("<4s4H2LH")
_COMMENT = 0xFFFF  # bytes behind the record at most
_ENTRY = b"PK\x01\x02"
_ENTRY_FORMAT = struct.Struct("<4s6H3L5H2L")
_WIDE = 0xFFFFFFFF  # zip64 has the number elsewhere


@dataclass(frozen=True)
class AppendedFiles:
    """An archive behind a model.

    Attributes:
        start: Where it stands in the file.
        content: All of it.
        directory: Where its directory stands in it.
        end: Where the record that closes it stands in it.
        absolute: Whether its places count from the start of the model.
    """

    start: int
    content: bytes
    directory: int
    end: int
    absolute: bool

    def behind(self, size: int) -> bytes:
        """The archive behind a model of another size, with what goes between: its files as they are, places new.

        Args:
            size: Of the model.
        """
        gap = bytes((self.start - size) % _ALIGNMENT)
        content, moved = bytearray(self.content), size + len(gap) - self.start
        if self.absolute and moved:
            _move(content, self.end, _END_FORMAT, 6, moved)
            place = self.directory
            while content[place : place + 4] == _ENTRY:
                _move(content, place, _ENTRY_FORMAT, -1, moved)
                lengths = _ENTRY_FORMAT.unpack_from(content, place)[10:13]  # of the name, what's extra, the comment
                place += _ENTRY_FORMAT.size + sum(lengths)
        return gap + bytes(content)


def appended_files(content: mmap.mmap) -> AppendedFiles | None:
    """The archive at the end of a model file; None where there is none.

    Args:
        content: All of the file.

    Raises:
        NotEditableError: if it's an archive of more than 4 GB.
    """
    end = content.rfind(_END, max(0, len(content) - _COMMENT - _END_FORMAT.size))
    if end < 0 or len(content) < end + _END_FORMAT.size:
        return None
    *_, length, stated, comment = _END_FORMAT.unpack_from(content, end)
    if len(content) != end + _END_FORMAT.size + comment:
        return None
    if _WIDE in {length, stated}:
        raise NotEditableError("the model carries files of more than 4 GB behind it, whose places can't be changed")
    directory = end - length
    try:
        with zipfile.ZipFile(cast(IO[bytes], content)) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile:
        return None
    before = directory - stated  # what stands in front of where places count from
    start = min((item.header_offset for item in entries), default=directory)
    return AppendedFiles(start, bytes(content[start:]), directory - start, end - start, absolute=before == 0)


def _move(content: bytearray, place: int, form: struct.Struct, field: int, by: int) -> None:
    """Add to one number of a record."""
    values = list(form.unpack_from(content, place))
    values[field] += by
    form.pack_into(content, place, *values)
