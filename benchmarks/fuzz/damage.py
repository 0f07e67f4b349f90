"""Damage to files: bytes, members of archives, messages of protobuf, values of JSON."""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

from benchmarks.fuzz.values import odd_text, odd_whole, shuffled_json

__all__ = ["damaged_archive", "damaged_bytes", "damaged_json", "damaged_message"]

_ENDS = 64  # bytes at either end of a file, which say what it is


def damaged_bytes(content: bytes, draw: random.Random) -> bytes:
    """The same with one to four places changed, or cut off."""
    found = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        if not found:
            break
        place = _place(len(found), draw)
        draw.choice(_DEEDS)(found, place, draw)
    return bytes(found)


def _place(size: int, draw: random.Random) -> int:
    near = draw.random()
    if near < 0.2:
        return draw.randrange(min(size, _ENDS))
    if near < 0.4:
        return size - 1 - draw.randrange(min(size, _ENDS))
    return draw.randrange(size)


def _flip(found: bytearray, place: int, draw: random.Random) -> None:
    found[place] ^= 1 << draw.randrange(8)


def _set(found: bytearray, place: int, draw: random.Random) -> None:
    found[place] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])


def _number(found: bytearray, place: int, draw: random.Random) -> None:
    size, form = draw.choice([(2, "<H"), (4, "<I"), (8, "<Q"), (4, ">I")])
    found[place : place + size] = struct.pack(form, odd_whole(draw) % (1 << 8 * size))


def _cut(found: bytearray, place: int, draw: random.Random) -> None:
    del found[place:]


def _remove(found: bytearray, place: int, draw: random.Random) -> None:
    del found[place : place + draw.choice([1, 2, 4, 16, 100])]


def _repeat(found: bytearray, place: int, draw: random.Random) -> None:
    found[place:place] = found[place : place + draw.choice([1, 4, 64])] * draw.choice([1, 2, 50])


def _zero(found: bytearray, place: int, draw: random.Random) -> None:
    size = min(draw.choice([4, 32, 512]), len(found) - place)
    found[place : place + size] = bytes(size)


def _insert(found: bytearray, place: int, draw: random.Random) -> None:
    found[place:place] = draw.randbytes(draw.choice([1, 4, 32]))


_DEEDS: tuple[Callable[[bytearray, int, random.Random], None], ...] = (
    _flip, _flip, _set, _set, _number, _number, _cut, _remove, _repeat, _zero, _insert,
)  # fmt: skip


def damaged_json(content: bytes, draw: random.Random, *, once: bool = False) -> bytes:
    """JSON with one to three values changed; sometimes its bytes, or nested far too deeply.

    Args:
        content: JSON.
        draw: Decides where and how.
        once: Whether one value is changed and nothing else.
    """
    if once:
        return json.dumps(shuffled_json(json.loads(content), draw)).encode()
    deed = draw.random()
    if deed < 0.15:
        return damaged_bytes(content, draw)
    if deed < 0.18:
        return b"[" * 5000 + content + b"]" * 5000
    value = json.loads(content)
    for _ in range(draw.choice([1, 1, 2, 3])):
        value = shuffled_json(value, draw)
    return json.dumps(value).encode()


def damaged_archive(content: bytes, draw: random.Random) -> bytes:
    """A zip whose members were changed, dropped, renamed or written twice; sometimes its bytes."""
    if draw.random() < 0.3:
        return damaged_bytes(content, draw)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(item.filename, archive.read(item)) for item in archive.infolist()]
    place, deed = draw.randrange(len(members)), draw.randrange(10)
    name, inside = members[place]
    if deed == 0:
        del members[place]
    elif deed == 1:
        members[place] = (odd_text(draw).replace("\0", "")[:60000].encode(errors="replace").decode() or "x", inside)
    elif deed == 2:
        members.append((f"more/{odd_text(draw).encode(errors='replace').decode()[:200]}", draw.randbytes(50)))
    elif name.endswith(".json") and deed < 9:
        members[place] = (name, damaged_json(inside, draw))
    else:
        members[place] = (name, damaged_bytes(inside, draw))
    stream = io.BytesIO()
    kind = draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with zipfile.ZipFile(stream, "w", kind) as archive:
        for name, inside in members:
            archive.writestr(name, inside)
    return stream.getvalue()


def damaged_message(message: Any, draw: random.Random) -> bytes:
    """A protobuf message with one to three fields changed, dropped or repeated, at any depth.

    Args:
        message: Changed.
        draw: Decides where and how.
    """
    for _ in range(draw.choice([1, 1, 2, 3])):
        _change(message, draw)
    return bytes(message.SerializeToString())


def _change(message: Any, draw: random.Random) -> None:
    fields = message.ListFields()
    if not fields:
        return
    field, value = draw.choice(fields)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        message.ClearField(field.name)
    elif field.is_repeated:
        _change_items(message, field, value, draw)
    elif field.message_type is not None:
        if draw.random() < 0.1:
            message.ClearField(field.name)
        else:
            _change(value, draw)
    else:
        setattr(message, field.name, _scalar(field, value, draw))


def _change_items(message: Any, field: Any, value: Any, draw: random.Random) -> None:
    place, deed = draw.randrange(len(value)), draw.random()
    if deed < 0.12:
        del value[place]
    elif deed < 0.2 and field.message_type is not None:
        value.add().CopyFrom(value[place])
    elif field.message_type is not None:
        _change(value[place], draw)
    else:
        value[place] = _scalar(field, value[place], draw)


def _scalar(field: Any, value: Any, draw: random.Random) -> Any:
    if field.cpp_type == field.CPPTYPE_STRING:
        if field.type == field.TYPE_BYTES:
            return damaged_bytes(value, draw)
        text = odd_text(draw) if draw.random() < 0.7 else value[::-1]
        return text.encode(errors="replace").decode()
    if field.cpp_type == field.CPPTYPE_BOOL:
        return not value
    if field.cpp_type in {field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT}:
        return draw.choice([0.0, -1.0, float("nan"), float("inf"), 3e38])
    if field.cpp_type == field.CPPTYPE_ENUM:
        return draw.choice(list(field.enum_type.values)).number
    bits = 32 if field.cpp_type in {field.CPPTYPE_INT32, field.CPPTYPE_UINT32} else 64
    number = odd_whole(draw) if draw.random() < 0.6 else value + draw.choice([-1, 1, 2])
    if field.cpp_type in {field.CPPTYPE_UINT32, field.CPPTYPE_UINT64}:
        return number % (1 << bits)
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
