"""Ways to put a hostile member into an archive so that one reader sees it and another doesn't."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Mapping

from benchmarks.containers.zip_parts import Ending, Entry, written

__all__ = ["disguised_archive", "flipped"]

Draw = random.Random


def disguised_archive(whole: Mapping[str, bytes], hostile: Mapping[str, bytes], draw: Draw) -> bytes:
    """An archive of ordinary members, and of hostile ones in disguise.

    Args:
        whole: Content by name.
        hostile: Content of members that replace some of these, or are added.
        draw: Chooses.
    """
    deflated = draw.random() < 0.3
    entries = [Entry(name.encode(), content, deflated) for name, content in whole.items()]
    ending = Ending()
    for name, content in hostile.items():
        new = Entry(name.encode(), content, draw.random() < 0.3)
        place = next((number for number, item in enumerate(entries) if item.name == new.name), None)
        _PLACES[draw.choice(list(_PLACES))](entries, place, new, draw)
        for _ in range(draw.choice([0, 1, 1, 1, 2])):
            draw.choice(_LIES)(new, draw)
    for _ in range(draw.choice([0, 0, 1])):
        draw.choice(_LIES)(draw.choice(entries), draw)
    for _ in range(draw.choice([0, 0, 0, 1])):
        draw.choice(_ENDINGS)(entries, ending, whole, draw)
    data = written(entries, ending)
    return flipped(data, draw) if draw.random() < 0.2 else data


def flipped(data: bytes, draw: Draw) -> bytes:
    """The same with a few bits or numbers changed."""
    found = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 4])):
        if not found:
            break
        place = draw.randrange(len(found))
        if draw.random() < 0.3:
            marks = [found.find(mark, place) for mark in (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06")]
            known = [mark for mark in marks if mark >= 0]
            place = min(len(found) - 1, draw.choice(known) + draw.randrange(46)) if known else place
        found[place] = draw.choice([found[place] ^ (1 << draw.randrange(8)), 0, 0xFF, draw.randrange(256)])
    return bytes(found)


# --- Where the hostile member is ---


def _instead(entries: list[Entry], place: int | None, new: Entry, draw: Draw) -> None:
    if place is None:
        entries.insert(draw.randrange(len(entries) + 1), new)
    else:
        entries[place] = new


def _beside(entries: list[Entry], place: int | None, new: Entry, draw: Draw) -> None:
    entries.insert((place or 0) + draw.choice([0, 1]), new)


def _beside_by_another_name(entries: list[Entry], place: int | None, new: Entry, draw: Draw) -> None:
    new.name = draw.choice(_NAMES)(new.name, draw)
    _beside(entries, place, new, draw)


def _instead_by_another_name(entries: list[Entry], place: int | None, new: Entry, draw: Draw) -> None:
    new.name = draw.choice(_NAMES)(new.name, draw)
    _instead(entries, place, new, draw)


def _unlisted(entries: list[Entry], place: int | None, new: Entry, draw: Draw) -> None:
    """It lies there, and the list points to the ordinary one, or to it under the other's name."""
    new.absent = "listed"
    entries.insert(number := draw.randrange(len(entries) + 1), new)
    if place is not None and draw.random() < 0.5:
        entries[place + (number <= place)].place = number


def _listed_for_another(entries: list[Entry], place: int | None, new: Entry, draw: Draw) -> None:
    """The list has its checksum and sizes for the ordinary one, or the other way round."""
    if place is None:
        return _beside(entries, place, new, draw)
    old = entries[place]
    entries[place] = new
    new.listed_crc, new.listed_size, new.listed_packed = zlib.crc32(old.content), len(old.content), len(old.content)
    return None


_PLACES: dict[str, Callable[[list[Entry], int | None, Entry, Draw], None]] = {
    "instead": _instead,
    "beside": _beside,
    "beside, another name": _beside_by_another_name,
    "instead, another name": _instead_by_another_name,
    "not listed": _unlisted,
    "listed for another": _listed_for_another,
}


# --- Names that some readers take for others ---


def _capital(name: bytes, draw: Draw) -> bytes:
    places = [place for place, letter in enumerate(name) if chr(letter).isalpha()]
    place = draw.choice(places)
    return name[:place] + bytes([name[place] ^ 32]) + name[place + 1 :]


def _capital_folder(name: bytes, _: Draw) -> bytes:
    folder, slash, last = name.rpartition(b"/")
    return folder.swapcase() + slash + last


_NAMES: list[Callable[[bytes, Draw], bytes]] = [
    _capital,
    _capital_folder,
    lambda name, _: name.swapcase(),
    lambda name, _: b"./" + name,
    lambda name, _: b"/" + name,
    lambda name, _: name.replace(b"/", b"//", 1),
    lambda name, _: name.replace(b"/", b"\\", 1),
    lambda name, _: name + b"/",
    lambda name, _: name + b"\0x",
    lambda name, _: name + b" ",
    lambda name, _: b"x/../" + name,
    lambda name, _: b"other/" + name.partition(b"/")[2],
    lambda name, _: name.partition(b"/")[2] or name,
    lambda name, _: name.replace(b".", b"\xc2\xad."),
    lambda name, _: name.replace(b"i", b"\xc4\xb1", 1),
    lambda name, _: name.replace(b"s", b"\xc5\xbf", 1),
]


# --- Lies of a member ---


def _lie(field: str, choose: Callable[[Entry, Draw], object]) -> Callable[[Entry, Draw], None]:
    return lambda entry, draw: setattr(entry, field, choose(entry, draw))


def _size(entry: Entry, draw: Draw) -> int:
    return draw.choice([0, 1, len(entry.content) - 1, len(entry.content) + 1, 0xFFFFFFFF, 0xFFFFFFFE]) & 0xFFFFFFFF


def _crc(entry: Entry, draw: Draw) -> int:
    return draw.choice([0, zlib.crc32(entry.content) ^ (1 << draw.randrange(32))])


def _other_name(entry: Entry, draw: Draw) -> bytes:
    return draw.choice(_NAMES)(entry.name, draw)


def _extra(entry: Entry, draw: Draw) -> bytes:
    name = _other_name(entry, draw)
    unicode_path = struct.pack("<BI", 1, zlib.crc32(entry.name)) + name
    large = struct.pack("<QQQ", len(entry.content), _size(entry, draw), draw.randrange(1 << 20))
    kind, content = draw.choice([(0x7075, unicode_path), (0x0001, large), (0x4246, b"Z" * 9), (0xCAFE, b"")])
    return struct.pack("<HH", kind, len(content)) + content


_LIES: list[Callable[[Entry, Draw], None]] = [
    _lie("listed_crc", _crc),
    _lie("listed_crc", _crc),
    _lie("local_crc", _crc),
    _lie("local_name", _other_name),
    _lie("local_name", _other_name),
    _lie("listed_name", _other_name),
    _lie("local_size", _size),
    _lie("listed_size", _size),
    _lie("listed_packed", _size),
    _lie("local_method", lambda _, draw: draw.choice([0, 8, 12, 99])),
    _lie("listed_method", lambda _, draw: draw.choice([0, 8, 12, 99])),
    _lie("flags", lambda _, draw: draw.choice([0, 0x800, 1, 0x40, 0x2000, 0x2, 0x20])),
    _lie("descriptor", lambda _, __: True),
    _lie("local_extra", _extra),
    _lie("listed_extra", _extra),
    _lie("comment", lambda _, __: b"PK\x05\x06" + bytes(18)),
    _lie("offset", lambda _, draw: draw.choice([-1, 1, 30, -30, 1 << 20])),
    _lie("deflated", lambda entry, __: not entry.deflated),
]


# --- What's around the members ---


def _before(_: list[Entry], ending: Ending, whole: Mapping[str, bytes], draw: Draw) -> None:
    ending.before = _another(whole, draw)
    ending.shift = draw.choice([0, -len(ending.before)])


def _behind(_: list[Entry], ending: Ending, whole: Mapping[str, bytes], draw: Draw) -> None:
    ending.behind = _another(whole, draw)


def _comment(_: list[Entry], ending: Ending, whole: Mapping[str, bytes], draw: Draw) -> None:
    ending.comment = _another(whole, draw)[:65535]


def _between(_: list[Entry], ending: Ending, whole: Mapping[str, bytes], draw: Draw) -> None:
    ending.between = _another(whole, draw)


def _another(whole: Mapping[str, bytes], draw: Draw) -> bytes:
    """An ordinary archive, its end, or nonsense."""
    ordinary = written([Entry(name.encode(), content) for name, content in whole.items()], Ending())
    return draw.choice([ordinary, ordinary[-22:], b"\x89HDF\r\n\x1a\n" + bytes(64), b"x", bytes(512)])


def _count(_: list[Entry], ending: Ending, __: Mapping[str, bytes], draw: Draw) -> None:
    ending.count = draw.choice([-1, 1, 65000])


def _shifted(_: list[Entry], ending: Ending, __: Mapping[str, bytes], draw: Draw) -> None:
    ending.shift = draw.choice([-1, 1, 46])


def _shuffled(entries: list[Entry], ending: Ending, __: Mapping[str, bytes], draw: Draw) -> None:
    ending.order = draw.sample(range(len(entries)), len(entries))


_ENDINGS: list[Callable[[list[Entry], Ending, Mapping[str, bytes], Draw], None]] = [
    _before, _behind, _comment, _between, _count, _shifted, _shuffled,
]  # fmt: skip
